# Sourced by quickstart and test: makes .venv from a locked requirements file. Nothing here is run on its own.
# Needs: Python >= 3.11 with venv, and a package index that pip knows. No root.

export UV_PYTHON_DOWNLOADS=never PIP_DISABLE_PIP_VERSION_CHECK=1 PYTHONUNBUFFERED=1
# five processes import the same modules: compiled once, they start in a fraction of the time
unset PYTHONDONTWRITEBYTECODE

stop_with() { # one sentence to people, exit code 3: the machine, not the farm, is in the way
  printf 'onnxfarm: %s\n' "$*" >&2
  exit 3
}

find_python() { # prints the first interpreter that is new enough and can make a virtual environment
  local name
  for name in "${ONNXFARM_PYTHON:-}" python3.13 python3.12 python3.11 python3 python; do
    [ -n "$name" ] || continue
    if "$name" -c 'import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1; then
      printf '%s\n' "$name"
      return 0
    fi
  done
  return 1
}

make_environment() { # make_environment FOLDER: a virtual environment, kept when its Python still runs
  local folder=$1 python
  if [ -x "$folder/bin/python" ] && "$folder/bin/python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
    return 0
  fi
  python=$(find_python) ||
    stop_with "no Python 3.11 or newer with venv was found; install python3 and python3-venv, or name one in ONNXFARM_PYTHON."
  "$python" -m venv --clear "$folder" || stop_with "could not make a virtual environment in $folder; is the disk full or read-only?"
}

locked_lines() { # locked_lines NAME FILE: the lines of one package, hashes included
  awk -v name="$1" 'index($0, name "==") == 1 { on = 1; print; next } /^[^ ]/ { on = 0 } on && /--hash/ { print }' "$2"
}

say_every_5_s() { # say_every_5_s WORDS: in the background, until it or the script is ended
  local since=$SECONDS
  while sleep 5 && kill -0 $$ 2>/dev/null; do printf '%s, for %s s …\n' "$1" "$((SECONDS - since))" >&2; done
}

install_locked() { # install_locked FOLDER FILE: exactly the locked set, once per content of FILE
  local folder=$1 file=$2 stamp digest seconds=$SECONDS
  [ -r "$file" ] || stop_with "$file is missing; is this a whole checkout?"
  digest=$("$folder/bin/python" -c 'import hashlib, sys; print(hashlib.sha256(open(sys.argv[1], "rb").read()).hexdigest())' "$file")
  stamp="$folder/.installed-$(basename "$file" .txt)"
  [ "$(cat "$stamp" 2>/dev/null)" = "$digest" ] && return 0
  printf 'installing %s …\n' "$file" >&2
  say_every_5_s "still installing $file" &
  local speaker=$!
  if [ ! -x "$folder/bin/uv" ]; then
    locked_lines uv "$file" >"$folder/uv.txt"
    "$folder/bin/python" -m pip install --quiet --require-hashes -r "$folder/uv.txt" >"$folder/install.log" 2>&1 ||
      printf 'uv could not be installed; going on with pip (slower).\n' >&2
  fi
  if [ -x "$folder/bin/uv" ]; then
    "$folder/bin/uv" pip install --quiet --python "$folder/bin/python" --require-hashes -r "$file" >"$folder/install.log" 2>&1 && installed=1 || installed=
  fi
  if [ -z "${installed:-}" ]; then
    "$folder/bin/python" -m pip install --quiet --require-hashes -r "$file" >>"$folder/install.log" 2>&1 || {
      kill "$speaker" 2>/dev/null
      stop_with "installing $file failed: $(last_words "$folder/install.log") (all of it: $folder/install.log)"
    }
  fi
  kill "$speaker" 2>/dev/null
  printf '%s' "$digest" >"$stamp"
  printf 'installed %s in %s s\n' "$file" "$((SECONDS - seconds))" >&2
}

last_words() { # last_words FILE: why an installation failed, on one line
  if grep -qiE 'no space left' "$1"; then
    printf 'the disk is full'
  elif grep -qiE 'connect|resolve|network|timed? ?out|dns|no matching distribution|not found in the package registry' "$1"; then
    printf 'no package index answers; check the network or point pip at an index that does'
  else
    grep -vE '^[[:space:]]*$' "$1" | tail -n 1 | cut -c 1-300
  fi
}

link_command() { # link_command FOLDER: the `onnxfarm` command of this checkout
  printf '#!%s\nimport sys\n\nsys.path.insert(0, %s)\nfrom onnxfarm.main import app\n\nsys.exit(app())\n' \
    "$1/bin/python" "'$(printf '%s' "$PWD" | sed "s/'/\\\\'/g")'" >"$1/bin/onnxfarm"
  chmod +x "$1/bin/onnxfarm"
}
