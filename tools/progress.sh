# Progress on standard error, for `./run`: what is done, how far it is, roughly how long it takes.
# On a terminal one line that is rewritten, elsewhere a line every two seconds and one at the end:
# never silence.
# Bash and coreutils alone, since a bare Debian has nothing else yet.

say() { printf '%s\n' "$*" >&2; }

now_ms() { local t=${EPOCHREALTIME/[.,]/}; echo $((t / 1000)); }

# time_left DONE ALL ELAPSED_MS: "", or ", about 40 s left".
time_left() {
  local done=$1 all=$2 elapsed=$3
  [ "$done" -gt 0 ] && [ "$elapsed" -gt 3000 ] || return 0
  local seconds=$(((all - done) * elapsed / done / 1000))
  if [ $seconds -ge 120 ]; then echo ", about $(((seconds + 30) / 60)) min left"
  else echo ", about $seconds s left"; fi
}

# follow WHAT READER: shows how far WHAT is, as READER understands the lines of its input. READER
# LINE sets `step`, `steps` and `detail` from a line of progress; other lines it prints or drops.
# What had to be shown is shown a last time at the end: what comes next, as a rule a program that is
# silent for its own first two seconds, then begins its silence here.
follow() {
  local what=$1 reader=$2 line='' part='' status shown=0 start now
  local step=0 steps=0 detail=''
  local tty=0
  [ -t 2 ] && tty=1
  local every=1400  # and at most 400 more, while nothing is read
  [ $tty = 1 ] && every=200
  start=$(now_ms)
  while true; do
    status=0
    IFS= read -r -t 0.4 part || status=$?
    line+=$part
    if [ $status = 0 ]; then
      "$reader" "$line"
      line=''
    elif [ $status -le 128 ]; then
      break
    fi
    now=$(now_ms)
    if [ $((now - shown)) -ge $every ] && [ $((now - start)) -ge 300 ]; then
      show_progress
      shown=$now
    fi
  done
  [ -z "$line" ] || "$reader" "$line"
  now=$(now_ms)
  if [ $tty = 1 ]; then printf '\r\033[K' >&2
  elif [ "$shown" != 0 ]; then show_progress; fi
}

# The one line of follow(), whose variables it reads.
show_progress() {
  local text="$what, $(((now - start) / 1000)) s"
  [ "$steps" = 0 ] || text="$what: $step of $steps$(time_left "$step" "$steps" $((now - start)))"
  [ -z "$detail" ] || text+=" ($detail)"
  if [ $tty = 1 ]; then printf '\r\033[K%s' "${text:0:$((${COLUMNS:-80} - 1))}" >&2
  else say "$text"; fi
}

# A line that is no progress, above the progress.
above_progress() {
  [ ! -t 2 ] || printf '\r\033[K' >&2
  say "$1"
}

# Readers of follow(): apt's status lines (APT::Status-Fd), which count hundredths, and ninja's.
read_apt() {
  local kind package percent text
  IFS=: read -r kind package percent text <<<"$1"
  case $kind in
    dlstatus) detail="downloading" ;;
    pmstatus) detail="installing" ;;
    *) return 0 ;;
  esac
  steps=200
  step=${percent%%.*}
  [ "$kind" = dlstatus ] || step=$((step + 100))
}

read_ninja() {
  if [[ $1 =~ ^\[([0-9]+)/([0-9]+)\]\ (.*) ]]; then
    step=${BASH_REMATCH[1]}
    steps=${BASH_REMATCH[2]}
    detail=${BASH_REMATCH[3]##*/}
    detail=${detail%.o}
  elif [[ ! $1 =~ ^(ninja:\ (no\ work|Entering)|-- ) ]]; then
    above_progress "$1"
  fi
}

# Any other command: its lines are kept for who asks what went wrong, the time passes.
read_nothing() { :; }
