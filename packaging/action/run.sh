#!/usr/bin/env bash
# Runs the experiment of action.yml, shows the report in the job's summary and on the pull request, and ends as dbduel did.
set -euo pipefail

results=${DBDUEL_RESULTS:-$RUNNER_TEMP/dbduel-results}
arguments=(run "$DBDUEL_EXPERIMENT" --results "$results")
while IFS= read -r rule; do
    [ -z "$rule" ] || arguments+=(--fail-if "$rule")
done <<< "$DBDUEL_FAIL_IF"

records() {
    find "$results" -mindepth 1 -maxdepth 1 -type d | sort
}

mkdir -p "$results"
before=$(records)
code=0
dbduel "${arguments[@]}" || code=$?
echo "exit-code=$code" >> "$GITHUB_OUTPUT"

record=$(comm -13 <(echo "$before") <(records) | tail -1)
if [ -n "$record" ]; then
    echo "record=$record" >> "$GITHUB_OUTPUT"
fi
if [ -n "$record" ] && [ -f "$record/report.md" ]; then
    cat "$record/report.md" >> "$GITHUB_STEP_SUMMARY"
    if [ "$DBDUEL_COMMENT" = true ] && [ -n "$PULL_REQUEST" ]; then
        gh pr comment "$PULL_REQUEST" --repo "$GITHUB_REPOSITORY" --edit-last --create-if-none --body-file "$record/report.md" ||
            echo "::warning::The report could not be commented on the pull request; the job needs the permission pull-requests: write"
    fi
fi
exit "$code"
