#!/bin/sh
# PID 1 of a job's pod, in whatever image the person chose: nothing but a POSIX sh may be assumed, so only builtins are
# used (no sleep, mv or cat). It waits for slurmk8s-run's hand-over, runs the body with stdout and stderr straight to the
# results folder, and leaves the exit code in the hand-over folder.
#
# The body runs in the foreground: a background job of a shell without job control ignores SIGINT and SIGQUIT for ever.
# So PID 1 cannot trap while it waits (and as PID 1 it ignores what it does not trap); signals come by a fifo instead, to
# a helper that passes them on to every process (`kill -1` spares only PID 1 and the caller, so the helper cannot stop
# or kill itself).

# Our variables have names that the person's cannot have: those are exported here, in this shell.
slurmk8s_handover=$SLURMK8S_HANDOVER

# Opening a fifo blocks until the other side opens it too: the wait costs nothing and ends at once.
read -r _ <"$slurmk8s_handover/go"
# Variables as `export NAME='value'`, then `set -- interpreter [argument] script arguments…`; quoted by slurmk8s-run.
. "$slurmk8s_handover/command"

# Is this program in the image? A name is searched on PATH, a path must be executable.
has() {
	case $1 in
	/*) [ -x "$1" ] ;;
	*) command -v "$1" >/dev/null 2>&1 ;;
	esac
}

# `kubectl logs` shows the output too, where the image can follow a file; its place is the results folder.
if [ -z "$SLURMK8S_LOGS" ]; then
	:
elif has tail; then
	(
		trap '' HUP INT QUIT TERM USR1 USR2 ALRM CONT TSTP TTIN TTOU PIPE
		tail -n +1 -f "$SLURMK8S_RESULTS/stderr.log" >&2 2>/dev/null &
		exec tail -n +1 -f "$SLURMK8S_RESULTS/stdout.log" 2>/dev/null
	) &
else
	echo "slurmk8s: the output is in $SLURMK8S_RESULTS; this image has no tail to show it here"
fi
exec >>"$SLURMK8S_RESULTS/stdout.log" 2>>"$SLURMK8S_RESULTS/stderr.log"

# What only we can know about the end of the job goes to a file of its own, for the summary; people see it on stderr.
problem() {
	echo "slurmk8s: $1" >&2
	echo "$1" >"$slurmk8s_handover/problem"
	echo "$2" >"$slurmk8s_handover/exit"
	exit "$2"
}

cd "$SLURMK8S_WORKDIR" 2>/dev/null ||
	problem "The working folder $SLURMK8S_WORKDIR cannot be entered in the container: use /workspace or a folder that exists there." 1

slurmk8s_interpreter=$1
shift
case $slurmk8s_interpreter in
/usr/bin/env | /bin/env)
	# The program that env shall find: the first word that is neither an option nor an assignment.
	slurmk8s_wanted=
	slurmk8s_skip=
	for slurmk8s_word in $1; do
		if [ "$slurmk8s_skip" ]; then
			slurmk8s_skip=
			continue
		fi
		case $slurmk8s_word in
		-u | -C | --unset | --chdir) slurmk8s_skip=1 ;;
		-S?*) slurmk8s_wanted=${slurmk8s_word#-S} && break ;;
		-* | *=*) ;;
		*) slurmk8s_wanted=$slurmk8s_word && break ;;
		esac
	done
	# Quotes and variables are for env itself to understand; then it is also env that says what is missing.
	case $slurmk8s_wanted in "" | *[\"\'\\$]*) slurmk8s_wanted=$slurmk8s_interpreter ;; esac
	;;
*) slurmk8s_wanted=$slurmk8s_interpreter ;;
esac
if ! has "$slurmk8s_wanted"; then
	case $slurmk8s_wanted in
	bash | /bin/bash | /usr/bin/bash)
		echo "slurmk8s: this image has no bash; its sh runs the script instead" >&2
		[ "$slurmk8s_wanted" = "$slurmk8s_interpreter" ] || shift
		slurmk8s_interpreter=/bin/sh
		# Login and long options are bash's own; what sh knows too (-e, -x) is kept.
		case $1 in
		-l | --*) shift ;;
		esac
		;;
	*) problem "The image has no $slurmk8s_wanted, which the script's first line asks for: use an image that has it, or change the line." 127 ;;
	esac
elif ! has "$slurmk8s_interpreter"; then
	problem "The image has no $slurmk8s_interpreter, which the script's first line asks for: use an image that has it, or change the line." 127
fi

(
	trap '' HUP INT QUIT TERM USR1 USR2 ALRM CONT TSTP TTIN TTOU PIPE
	exec 3<>"$slurmk8s_handover/signals" >/dev/null 2>&1
	while read -r whom signal <&3; do
		case $signal in *[!A-Z0-9]*) continue ;; esac
		case $whom,$signal in all,TERM) : >"$slurmk8s_handover/terminated" ;; esac # so nobody tells it again
		case $whom in
		all) kill -s "$signal" -- -1 ;; # dash takes a bare -1 for an option
		shell) read -r shell <"$slurmk8s_handover/shell" && kill -s "$signal" "$shell" ;;
		esac
	done
) &

# The inner sh puts down its own pid, which becomes the body's: `--signal=B:` is for that process alone.
/bin/sh -c 'echo $$ >"$0" && exec "$@"' "$slurmk8s_handover/shell" "$slurmk8s_interpreter" "$@"
status=$?

# A process that the kernel killed for memory looks like any other that was killed; the container's own cgroup knows
# (version 2, then version 1).
for counters in /sys/fs/cgroup/memory.events /sys/fs/cgroup/memory/memory.oom_control; do
	[ -r "$counters" ] || continue
	while read -r key count; do
		case $key,$count in oom_kill,[1-9]*) echo "$count" >"$slurmk8s_handover/out_of_memory" ;; esac
	done <"$counters"
done
for peak in /sys/fs/cgroup/memory.peak /sys/fs/cgroup/memory/memory.max_usage_in_bytes; do
	[ -r "$peak" ] && read -r bytes <"$peak" && echo "$bytes" >"$slurmk8s_handover/peak"
done
# The last word on CPU time: the agent's last look was a few seconds ago.
if [ -r /sys/fs/cgroup/cpu.stat ]; then
	while read -r key count; do
		case $key in usage_usec) echo "$count us" >"$slurmk8s_handover/cpu" ;; esac
	done </sys/fs/cgroup/cpu.stat
else
	for usage in /sys/fs/cgroup/cpuacct/cpuacct.usage "/sys/fs/cgroup/cpu,cpuacct/cpuacct.usage"; do
		[ -r "$usage" ] && read -r count <"$usage" && echo "$count ns" >"$slurmk8s_handover/cpu" && break
	done
fi
echo "$status" >"$slurmk8s_handover/exit"
exit "$status"
