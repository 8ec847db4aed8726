#!/usr/bin/env bash
# Checks the report's script: every file parses, and TypeScript's checker (reading the JSDoc types)
# finds nothing. The checker is fetched once into build/web.
set -euo pipefail
cd "$(dirname "$0")/.."

assets=src/traindbg/report/assets
if ! compgen -G "$assets/*.js" >/dev/null; then
    echo "web: no script below $assets" >&2
    exit 1
fi
for file in "$assets"/*.js; do
    node --check "$file"
done

typescript=5.9.3
tools=build/web
if [ ! -x "$tools/node_modules/.bin/tsc" ]; then
    mkdir -p "$tools"
    if ! npm install --silent --no-audit --no-fund --no-save --prefix "$tools" "typescript@$typescript" \
        </dev/null >"$tools/npm.log" 2>&1; then
        tail -n 5 "$tools/npm.log"
        echo "web: npm could not fetch typescript@$typescript" >&2
        exit 1
    fi
fi
"$tools/node_modules/.bin/tsc" --noEmit --allowJs --checkJs --strict --target es2023 --lib es2023,dom,dom.iterable \
    "$assets"/*.js "$assets"/*.d.ts
echo "web: node and tsc find nothing"
