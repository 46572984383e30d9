#!/bin/sh
# Install the built wheel into a clean environment and run every command there: package.sh PYTHON ENVIRONMENT EXTRA
# Without an extra the sdist is installed instead of the wheel afterwards, and must do the same.
set -eu
python=$1 environment=$2-${3:-none} extra=$3
rm -rf "$environment"
"$python" -m venv "$environment"
wheel=$(ls dist/*.whl)
"$environment/bin/pip" install --quiet --disable-pip-version-check --no-compile -c constraints.txt "$wheel${extra:+[$extra]}"
"$environment/bin/python" -I .ci/smoke.py $extra
if [ -z "$extra" ]; then
    "$environment/bin/pip" install --quiet --disable-pip-version-check --no-compile --force-reinstall --no-deps dist/*.tar.gz
    "$environment/bin/python" -I .ci/smoke.py
fi
rm -rf "$environment"
