# shellcheck shell=bash
# Sourced by the scripts: quiet steps with a name, a time and a verdict; the output of a failed one is shown.

DFLOW_JOBS=${DFLOW_JOBS:-$(nproc)}

# seconds: whole seconds since the shell started.
seconds() { echo "${SECONDS%.*}"; }

# step NAME LOG COMMAND...: runs the command with its output in LOG; prints one line, and the end of LOG on failure.
step() {
  local name=$1 log=$2 start status=0
  shift 2
  start=$(seconds)
  mkdir -p "$(dirname "$log")"
  if [ -t 1 ]; then printf '%-28s ...' "$name"; fi
  "$@" >"$log" 2>&1 </dev/null || status=$?
  if [ -t 1 ]; then printf '\r'; fi
  if [ $status -eq 0 ]; then
    printf '%-28s ok    %4d s\n' "$name" $(($(seconds) - start))
  else
    printf '%-28s FAIL  %4d s\n' "$name" $(($(seconds) - start))
    echo "---- the end of $log"
    tail -n "${DFLOW_TAIL:-60}" "$log"
    echo "----"
  fi
  return $status
}
