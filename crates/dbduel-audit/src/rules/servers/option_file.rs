//! Rules about option files: whether the server takes them, and whether they are complete.

use dbduel_record::event::Severity;

use crate::evidence::{RefusedOption, ServerEvidence};
use crate::finding::{Finding, FindingKind, Side, at_most};
use crate::options::only_product;
use crate::reading::Read;
use crate::{Case, Stage};

/// Options and files that a claim names; the evidence has all of them.
const NAMED: usize = 3;

/// One finding for each contender whose server rejects its option file.
pub fn refused(case: &Case) -> Vec<Finding> {
    let contenders = case.contenders.iter();
    contenders
        .filter(|server| !server.refused.is_empty())
        .map(|server| refused_by(server, case.stage))
        .collect()
}

fn refused_by(server: &ServerEvidence, stage: Stage) -> Finding {
    // What is certain comes before what is inferred.
    let mut lines: Vec<&RefusedOption> = server.refused.iter().collect();
    lines.sort_by_key(|refused| refused.is_inferred);
    let reasons = lines.iter().map(|refused| refused.why.clone());
    let reasons = at_most(NAMED, reasons).join(", ");
    let is_inferred = lines.iter().all(|refused| refused.is_inferred);
    let verb = if is_inferred {
        "probably rejects"
    } else {
        "rejects"
    };
    let (severity, effect) = match (server.is_predicted, is_inferred) {
        (true, false) => (Severity::Void, ""),
        (true, true) => (Severity::Doubt, ""),
        (false, _) => (
            Severity::Doubt,
            "; its variables show that another file was in effect",
        ),
    };
    let claim = format!(
        "`{}` ({} {}) {verb} its option file{}: {reasons}{effect}.",
        server.name,
        server.product,
        server.version_text,
        whose_file(server)
    );
    let remedy = match stage {
        Stage::Results => "Publish the option file of the server.",
        Stage::Configuration => "Correct the file, or give its product and version.",
    };
    let from = lines.iter().map(|refused| Read {
        name: refused.place.clone(),
        value: refused.option.clone(),
    });
    let evidence = Side {
        contender: server.name.clone(),
        value: format!("{} refused", server.refused.len()),
        from: from.collect(),
    };
    Finding::new(severity, &[&server.name], claim, remedy)
        .of(FindingKind::NotComparable)
        .resting_on([evidence])
}

/// Names the product that the file is for, when all refused options belong to one other product.
fn whose_file(server: &ServerEvidence) -> String {
    let mut products = server
        .refused
        .iter()
        .map(|refused| only_product(&refused.option));
    let first = products.next().flatten();
    match first {
        Some(product) if product != server.product && products.all(|other| other == first) => {
            format!(", which is for {product}")
        }
        _ => String::new(),
    }
}

/// One finding for each contender whose option file includes a missing file.
pub fn incomplete(case: &Case) -> Vec<Finding> {
    let contenders = case.contenders.iter();
    contenders
        .filter(|server| server.is_predicted && !server.missing_includes.is_empty())
        .map(|server| {
            let missing = server.missing_includes.iter();
            let named = missing.map(|missing| format!("`{}` ({})", missing.target, missing.place));
            let claim = format!(
                "Settings of `{}` are known in part only; files that its option file includes are missing: {}.",
                server.name,
                at_most(NAMED, named).join(", ")
            );
            let remedy = "Add the included files, or provide SHOW GLOBAL VARIABLES.";
            Finding::new(Severity::Doubt, &[&server.name], claim, remedy).of(FindingKind::Undisclosed)
        })
        .collect()
}
