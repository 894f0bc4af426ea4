//! The page in a real browser: script, time to open the report of a day, escaping of names, and legibility.
//!
//! The tests count as ignored where there was no `chromium` when they were built.

#[cfg(test)]
mod tests {
    use dbduel_test_attribute::needs_program;

    use std::io::Write as _;
    use std::process::{Command, Stdio};

    use crate::{Options, format};
    use dbduel_judge::records::sweep::summarise_sweep;
    use dbduel_judge::summarise;
    use dbduel_testkit::synthetic::suite::suite_record;
    use dbduel_testkit::synthetic::{Observation, Scenario, sweep};

    /// Acts as a reader would and reports the results in the page's title.
    const READER: &str = r#"<script>addEventListener("load", () => {
        const result = {};
        const seen = (test) => [...document.querySelectorAll(test)].filter((e) => e.getClientRects().length);
        result.charts = seen("main svg.chart").length;
        const mark = seen(".stretch .mark")[0];
        const at = mark.getBoundingClientRect();
        const point = { bubbles: true, clientX: at.x + 2, clientY: at.y + 2, pointerType: "mouse", button: 0 };
        mark.dispatchEvent(new PointerEvent("pointermove", point));
        result.tip = document.getElementById("tip").textContent;
        const chart = mark.closest("svg");
        const label = () => [...chart.querySelectorAll("text.tick")].filter((e) => e.getClientRects().length).map((e) => e.textContent).join(" ");
        result.before = label();
        chart.dispatchEvent(new KeyboardEvent("keydown", { key: "+", bubbles: true }));
        result.zoomed = label();
        chart.dispatchEvent(new MouseEvent("dblclick", { bubbles: true }));
        result.restored = label();
        chart.dispatchEvent(new KeyboardEvent("keydown", { key: "ArrowRight", bubbles: true }));
        result.keyboard = document.getElementById("tip").textContent;
        Object.defineProperty(navigator, "clipboard", { value: { writeText: async (text) => { result.copied = text; } } });
        document.querySelector("button.copy").click();
        const button = document.querySelector("[data-series='1']");
        button.click();
        result.off = getComputedStyle(chart.querySelector(".mark.c1")).visibility;
        result.other = getComputedStyle(chart.querySelector(".mark.c0")).visibility;
        result.inText = getComputedStyle(button.querySelector(".mark")).visibility;
        result.pressed = button.getAttribute("aria-pressed");
        result.obeyed = window.obeyed === true;
        const timing = performance.getEntriesByType("navigation")[0];
        result.interactive_ms = timing.domInteractive;
        result.load_ms = timing.loadEventStart;
        const paint = performance.getEntriesByName("first-contentful-paint")[0];
        result.paint_ms = paint ? paint.startTime : null;
        result.unnamed = [...document.querySelectorAll("main svg.chart[tabindex]")].filter((e) => !e.getAttribute("aria-label")).length;
        result.unreachable = [...document.querySelectorAll("button, summary, nav a")].filter((e) => e.tabIndex < 0).length;
        const zoomed = [...document.querySelectorAll("rect.span")][0];
        result.warmUp = zoomed ? zoomed.textContent || zoomed.dataset.tip : "";
        result.wide = document.documentElement.scrollWidth <= innerWidth;
        document.title = "RESULT " + JSON.stringify(result);
    });</script></body>"#;

    /// Opens a page in frames of its own, as wide as windows are, and reports overflow in the title: excess width over
    /// the frame, elements beyond the edge that do not scroll, words beyond the edge of their chart, tables that must be
    /// scrolled, headings of tables with a word on two lines, and words of a chart on each other.
    const WIDTHS: &str = r#"<script>addEventListener("load", () => {
        const result = {};
        for (const frame of document.querySelectorAll("iframe")) {
            const page = frame.contentDocument, width = page.documentElement.clientWidth;
            const cut = [];
            for (const element of page.querySelectorAll("body *")) {
                if (!element.getClientRects().length) continue;
                const box = element.getBoundingClientRect(), chart = element.closest("svg");
                if (chart && chart !== element) {
                    const edge = chart.getBoundingClientRect();
                    const sticksOut = box.right > edge.right + 2 || box.left < edge.left - 2;
                    if (element.tagName === "text" && sticksOut && !element.closest("[clip-path]")) cut.push(element.textContent);
                    continue;
                }
                let isScrolled = false;
                for (let above = element.parentElement; above; above = above.parentElement) {
                    isScrolled ||= ["auto", "scroll", "hidden"].includes(frame.contentWindow.getComputedStyle(above).overflowX);
                }
                if (box.right > width + 1 && !isScrolled) cut.push(element.tagName + " " + element.textContent.slice(0, 40));
            }
            const scrolled = [...page.querySelectorAll(".scroll")].filter((e) => e.scrollWidth > e.clientWidth + 1);
            const heads = scrolled.map((e) => e.textContent.trim().replace(/\s+/g, " ").slice(0, 60));
            const broken = [];
            for (const head of page.querySelectorAll("th")) {
                const texts = page.createTreeWalker(head, NodeFilter.SHOW_TEXT);
                while (head.getClientRects().length && texts.nextNode()) {
                    const text = texts.currentNode;
                    for (const word of text.data.matchAll(/[\p{L}\p{N}]+/gu)) {
                        const range = page.createRange();
                        range.setStart(text, word.index);
                        range.setEnd(text, word.index + word[0].length);
                        if (new Set([...range.getClientRects()].map((box) => Math.round(box.top))).size > 1) broken.push(word[0]);
                    }
                }
            }
            const overprinted = [];
            for (const chart of page.querySelectorAll("svg.chart")) {
                const words = [...chart.querySelectorAll("text")].filter((e) => e.getClientRects().length);
                const boxes = words.map((e) => e.getBoundingClientRect());
                boxes.forEach((one, at) => boxes.slice(0, at).forEach((other, before) => {
                    const across = Math.min(one.right, other.right) - Math.max(one.left, other.left);
                    const upwards = Math.min(one.bottom, other.bottom) - Math.max(one.top, other.top);
                    if (across > 1 && upwards > 4) overprinted.push(words[before].textContent + " | " + words[at].textContent);
                }));
            }
            result[frame.dataset.width] = { beyond: page.documentElement.scrollWidth - width, cut, scrolled: heads, broken, overprinted };
        }
        document.title = "RESULT " + JSON.stringify(result);
    });</script></body>"#;

    /// Reports in the title words whose contrast with their background is below that of the Web Content Accessibility
    /// Guidelines 2.1 (1.4.3, level AA: 4.5, of large type 3).
    const CONTRAST: &str = r#"<script>addEventListener("load", () => {
        const parts = (colour) => (colour.match(/[\d.]+/g) || [0, 0, 0, 0]).map(Number);
        const over = (top, below) => {
            const [r, g, b, a = 1] = top;
            return [r, g, b].map((value, index) => value * a + below[index] * (1 - a));
        };
        const behind = (element) => {
            const layers = [];
            for (let above = element; above; above = above.parentElement) layers.push(parts(getComputedStyle(above).backgroundColor));
            return layers.reduceRight((below, layer) => over(layer, below), [255, 255, 255]);
        };
        const luminance = (colour) => {
            const linear = colour.map((value) => (value / 255 <= .04045 ? value / 255 / 12.92 : ((value / 255 + .055) / 1.055) ** 2.4));
            return .2126 * linear[0] + .7152 * linear[1] + .0722 * linear[2];
        };
        const faint = [];
        let words = 0;
        for (const element of document.querySelectorAll("body *")) {
            const isText = [...element.childNodes].some((node) => node.nodeType === 3 && node.textContent.trim());
            if (!isText || !element.getClientRects().length || element.closest("script, style, title")) continue;
            const style = getComputedStyle(element), ground = behind(element.closest("svg")?.parentElement ?? element);
            const ink = over(parts(element.closest("svg") ? style.fill : style.color), ground);
            const [low, high] = [luminance(ink), luminance(ground)].sort((a, b) => a - b);
            const ratio = (high + .05) / (low + .05), size = parseFloat(style.fontSize);
            words += 1;
            if (ratio < (size >= 24 || (size >= 18.6 && style.fontWeight >= 700) ? 3 : 4.5)) {
                faint.push(`${element.tagName} ${element.className.baseVal ?? element.className}: ${element.textContent.trim().slice(0, 30)}: ${ratio.toFixed(2)}`);
            }
        }
        document.title = "RESULT " + JSON.stringify({ words, faint });
    });</script></body>"#;

    /// Replacements that make media rules apply as on paper and on screens.
    const LIGHT: &[(&str, &str)] = &[(DARK_RULE, "@media not all")];
    const DARK: &[(&str, &str)] = &[(DARK_RULE, "@media all")];
    /// Printed where screens are dark, so that both rules apply and those of paper must win.
    const PAPER: &[(&str, &str)] = &[
        (DARK_RULE, "@media all"),
        ("@media print", "@media all"),
        ("@media screen and (max-width: 720px)", "@media not all"),
    ];
    const DARK_RULE: &str = "@media (prefers-color-scheme: dark)";

    fn shown_as(page: &str, rules: &[(&str, &str)]) -> String {
        rules.iter().fold(page.to_owned(), |page, (rule, applied)| {
            assert!(page.contains(rule), "{rule}");
            page.replace(rule, applied)
        })
    }

    /// Results of [`READER`] on a page.
    fn visit(html: &str) -> serde_json::Value {
        let (start, end) = html.rsplit_once("</body>").unwrap();
        browse(&format!("{start}{READER}{end}"))
    }

    /// Results that the script of a page wrote to its title.
    fn browse(html: &str) -> serde_json::Value {
        let dir = tempfile::tempdir().unwrap();
        let page = dir.path().join("page.html");
        std::fs::write(&page, html).unwrap();
        let profile = format!("--user-data-dir={}", dir.path().join("profile").display());
        let output = Command::new("chromium")
            .args([
                "--headless",
                "--no-sandbox",
                "--disable-gpu",
                "--no-first-run",
            ])
            .args(["--disable-quic", "--disable-background-networking"])
            .args([
                "--dump-dom",
                "--timeout=60000",
                "--window-size=1200,1000",
                &profile,
            ])
            .arg(format!("file://{}", page.display()))
            .stderr(Stdio::null())
            .output()
            .expect("chromium starts");
        let dom = String::from_utf8_lossy(&output.stdout).into_owned();
        let (_, rest) = dom
            .split_once("<title>RESULT ")
            .expect("the page ran its script");
        let (title, _) = rest.split_once("</title>").unwrap();
        let plain = title
            .replace("&lt;", "<")
            .replace("&gt;", ">")
            .replace("&amp;", "&");
        serde_json::from_str(&plain).unwrap()
    }

    /// Not captured by the test runner, unlike the printing macros.
    fn say(text: &str) {
        let _ = writeln!(std::io::stderr(), "\n!!! {text}\n");
    }

    fn page(record: &dbduel_record::Record) -> String {
        let (summary, findings) = summarise(record);
        let options = Options {
            width: 80,
            colour: false,
        };
        let format = format("html").unwrap();
        format.render(&summary, &findings, &options).text
    }

    #[test]
    #[needs_program("chromium")]
    fn a_reader_sees_values_stretches_time_and_switches_series_off() {
        let scenario = Scenario::duel().observed(Observation::doublewrite());
        let found = visit(&page(&scenario.record()));
        assert!(found["charts"].as_u64().unwrap() > 12, "{found}");
        assert!(
            found["tip"].as_str().unwrap().contains("/s over"),
            "{found}"
        );
        assert_ne!(found["before"], found["zoomed"], "{found}");
        assert_eq!(found["before"], found["restored"], "{found}");
        assert!(!found["keyboard"].as_str().unwrap().is_empty(), "{found}");
        assert_eq!(found["off"], "hidden", "{found}");
        assert_eq!(found["other"], "visible", "{found}");
        assert_eq!(found["inText"], "visible", "{found}");
        assert_eq!(found["pressed"], "false", "{found}");
        let copied = found["copied"].as_str().unwrap();
        assert!(
            copied.contains("faster than")
                && copied.contains("Was it fair?")
                && copied.contains("caveat"),
            "{found}"
        );
        assert_eq!(found["wide"], true, "nothing sticks out: {found}");
        assert_eq!(found["unnamed"], 0, "a chart without words: {found}");
        assert_eq!(found["unreachable"], 0, "not for the keyboard: {found}");
        let warm_up = found["warmUp"].as_str().unwrap();
        assert!(warm_up.contains("not counted"), "{found}");
    }

    /// Results of [`WIDTHS`] on pages in windows of these widths, none of which may cut, break or overprint a word.
    fn in_windows(pages: &[(u32, &str)]) -> serde_json::Value {
        let frames = pages.iter().map(|(width, page)| {
            let page = page.replace('&', "&amp;").replace('"', "&quot;");
            format!(
                "<iframe data-width=\"{width}\" style=\"width: {width}px; height: 900px\" srcdoc=\"{page}\"></iframe>"
            )
        });
        let html = format!(
            "<!doctype html><meta charset=\"utf-8\"><title></title><body>{}{WIDTHS}",
            frames.collect::<String>()
        );
        let found = browse(&html);
        for (width, frame) in found.as_object().unwrap() {
            assert!(frame["beyond"].as_i64().unwrap() <= 0, "{width}: {frame}");
            for fault in ["cut", "broken", "overprinted"] {
                assert_eq!(frame[fault], serde_json::json!([]), "{width}: {fault}");
            }
        }
        assert_eq!(found.as_object().unwrap().len(), pages.len());
        found
    }

    #[test]
    #[needs_program("chromium")]
    fn a_telephone_shows_the_verdicts_of_a_sweep_and_of_a_suite() {
        let (plan, records) = sweep(&[1_000, 10_000, 100_000], &[0.8, 0.9, 1.25]);
        let mut formats = crate::sweep::FORMATS.iter();
        let html = formats.find(|format| format.name == "html").unwrap();
        let options = Options {
            width: 80,
            colour: false,
        };
        let page_of_sweep = html.render(&summarise_sweep(&plan, &records), &options);
        let found = in_windows(&[(400, &page_of_sweep)]);
        assert_eq!(found["400"]["scrolled"], serde_json::json!([]));
        in_windows(&[(400, &page(&suite_record()))]);
        let mut scenario = Scenario::four();
        scenario.clients = vec![64, 80, 1024];
        in_windows(&[(400, &page(&scenario.record()))]);
    }

    #[test]
    #[needs_program("chromium")]
    fn nothing_is_cut_on_narrow_and_wide_windows() {
        let mut scenario = Scenario::duel().observed(Observation::doublewrite());
        scenario.clients = vec![1, 16, 256];
        scenario.sides[1].name = "no-doublewrite-and-a-long-name".to_owned();
        let page = page(&scenario.record());
        assert!(page.contains("By number of clients"));
        let paper = shown_as(&page, PAPER);
        // The last is the width of A4 between margins of a centimetre.
        let found = in_windows(&[
            (400, &page),
            (720, &page),
            (1280, &page),
            (1920, &page),
            (718, &paper),
        ]);
        for width in ["1280", "1920"] {
            assert_eq!(found[width]["scrolled"], serde_json::json!([]), "{width}");
        }
    }

    #[test]
    #[needs_program("chromium")]
    fn words_stand_out_on_light_and_dark_screens_and_on_paper() {
        let scenario = Scenario::duel().observed(Observation::doublewrite());
        let page = page(&scenario.record());
        for (name, rules) in [("light", LIGHT), ("dark", DARK), ("paper", PAPER)] {
            let page = shown_as(&page, rules);
            let (start, end) = page.rsplit_once("</body>").unwrap();
            let found = browse(&format!("{start}{CONTRAST}{end}"));
            assert!(found["words"].as_u64().unwrap() > 300, "{name}: {found}");
            assert_eq!(found["faint"], serde_json::json!([]), "{name}");
        }
    }

    #[test]
    #[needs_program("chromium")]
    fn names_that_are_markup_ten_kilobytes_or_right_to_left_stay_text() {
        let mut scenario = Scenario::duel().observed(Observation::doublewrite());
        scenario.sides[0].name = format!(
            "\u{202e}שרת</title><script>window.obeyed=true</script>{}",
            "x".repeat(10_000)
        );
        scenario.sides[1].name = "<img src=x onerror=\"window.obeyed=true\">".to_owned();
        let found = visit(&page(&scenario.record()));
        assert_eq!(found["obeyed"], false, "{found}");
        assert_eq!(found["wide"], true, "a long name is broken: {found}");
    }

    #[test]
    #[needs_program("chromium")]
    fn a_day_is_a_page_of_a_few_megabytes_that_opens() {
        let mut scenario = Scenario::duel().observed(Observation::doublewrite());
        scenario.sides[1].stalls_per_s = 0.01;
        let html = page(&scenario.repeated_record(33));
        assert!(html.len() < 3_000_000, "{} bytes", html.len());
        let found = visit(&html);
        say(&format!(
            "the page of a day: {} bytes, first paint after {} ms, loaded after {} ms",
            html.len(),
            found["paint_ms"],
            found["load_ms"]
        ));
        // How soon is said, since that is the machine's business too; a second is the aim on one of one's own.
        assert!(found["interactive_ms"].as_f64().unwrap() > 0.0, "{found}");
    }
}
