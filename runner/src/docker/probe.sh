# What a command in a container can do, tried by a command in a container. Says a line for each property that
# it found to hold, and for each attempt that should have failed and did not. Needs nothing but a shell.
# HOME_OF_RUNNER, PID_NAMESPACE and CANARY come from the runner. With AS_ROOT it is tried as root of the container,
# whose own files are no more than that; they go with its next stop.

write_to() { (: >>"$1") 2>/dev/null; }
read_from() { (read -r _ <"$1") 2>/dev/null; }
# To root the mode of a file says nothing.
changes() {
    [ -n "$AS_ROOT" ] || { [ -w "$1" ]; return; }
    if [ -d "$1" ]; then mkdir "$1/probe.$$" 2>/dev/null || write_to "$1/probe.$$"; else write_to "$1"; fi
}
holds() { echo "holds $1"; }
breaks() { echo "breaks $1: $2"; }

# Nothing but its own folders can be written, whatever is mounted.
broken=
while read -r _ _ _ root at options _; do
    case ",$options," in *,rw,*) ;; *) continue ;; esac
    case "$root $at" in
        *" /workspace" | *" /home/user" | *" /tmp" | *" /run" | *" /dev" | *" /dev/"*) ;;
        # The container's own, and the engine's three files of each container.
        *" /" | *" /etc/hosts" | *" /etc/hostname" | *" /etc/resolv.conf") [ -n "$AS_ROOT" ] || [ ! -w "$at" ] || { broken=1; breaks file_writes "$at can be written"; } ;;
        # What the engine hides is the null device.
        "/null /proc/"* | "/ /proc") ;;
        *) changes "$at" && broken=1 && breaks file_writes "$at can be written" ;;
    esac
done </proc/self/mountinfo
[ -n "$AS_ROOT" ] || for file in /probe /etc/probe /usr/bin/probe /etc/hosts /etc/hostname /etc/resolv.conf; do
    write_to "$file" && broken=1 && breaks file_writes "$file can be written"
done
for file in /.gantry/probe /.gantry/bin/gantry-supervisor /.gantry/bin/gantry-files /.gantry/operations/probe /.gantry/door/probe \
    /usr/local/bin/sudo /proc/1/oom_score_adj /proc/sys/kernel/core_pattern /proc/sysrq-trigger /sys/kernel/uevent_helper \
    /sys/fs/cgroup/cgroup.procs /sys/fs/cgroup/pids/cgroup.procs; do
    write_to "$file" && broken=1 && breaks file_writes "$file can be written"
done
# Root might change whose a file is. What is in /proc beside the processes is everybody's; what the engine hides is
# the container's own null device.
[ -z "$AS_ROOT" ] || for file in /.gantry/bin/gantry-supervisor /.gantry/bin/gantry-files /usr/local/bin/sudo /proc/[!0-9]*; do
    [ ! -L "$file" ] && [ ! -c "$file" ] && chmod u+r "$file" 2>/dev/null && broken=1 && breaks file_writes "$file can be changed"
done
[ -n "$broken" ] || holds file_writes

# Of the host's files there are only those that the runner gave it.
broken=
while read -r _ _ _ root at _; do
    case "$at" in
        / | /proc* | /sys* | /dev* | /tmp | /run | /workspace | /home/user) ;;
        /etc/hosts | /etc/hostname | /etc/resolv.conf | /.gantry/bin/* | /.gantry/operations) ;;
        /.gantry/door | /usr/local/bin/sudo) ;;
        *) broken=1; breaks file_reads "$root of the host is at $at" ;;
    esac
done </proc/self/mountinfo
for file in /.gantry/operations/orders /dev/mem /dev/kmem /proc/kcore /proc/1/environ /proc/1/root/etc/shadow \
    "/proc/$PPID/root/etc/shadow"; do
    read_from "$file" && broken=1 && breaks file_reads "$file can be read"
done
[ -n "$broken" ] || holds file_reads

if [ -e "$HOME_OF_RUNNER" ] || read_from "$CANARY" || read_from "/proc/1/root$CANARY"; then
    breaks credential "the runner's home can be reached"
else
    holds credential
fi

broken=
for socket in /var/run/docker.sock /run/docker.sock /run/containerd/containerd.sock /run/podman/podman.sock \
    /run/dbus/system_bus_socket /run/systemd/private; do
    [ -e "$socket" ] && broken=1 && breaks sockets "$socket is there"
done
[ -n "$broken" ] || holds sockets

# It was asked for none.
broken=
while read -r name _; do
    case "$name" in
        Inter-* | face* | lo:*) ;;
        *) broken=1; breaks network "there is an interface $name" ;;
    esac
done </proc/net/dev
[ -n "$broken" ] || holds network

read -r first </proc/1/comm
own="$(readlink /proc/self/ns/pid)"
reached=
# A signal of number 0 is none, and is refused as others are.
for process in /proc/[0-9]*; do
    read -r name <"$process/comm" 2>/dev/null || continue
    pid="${process#/proc/}"
    [ "$name" = gantry-supervis ] || continue
    kill -0 "$pid" 2>/dev/null && reached=1 && breaks processes "process $pid, which supervises, can be signalled"
    [ -e "$process/cwd/." ] && reached=1 && breaks processes "the folder of process $pid can be reached"
done
if [ -z "$reached" ] && [ "$first" = gantry-supervis ] && [ -n "$own" ] && [ "$own" != "$PID_NAMESPACE" ]; then
    holds processes
else
    breaks processes "the first process that is seen is $first"
fi

limit() { (read -r value <"$1" && [ "$value" != max ] && [ "${#value}" -lt 16 ]) 2>/dev/null; }
if { limit /sys/fs/cgroup/memory.max && limit /sys/fs/cgroup/pids.max; } \
    || { limit /sys/fs/cgroup/memory/memory.limit_in_bytes && limit /sys/fs/cgroup/pids/pids.max; }; then
    holds resources
else
    breaks resources "there is no limit of memory or of processes"
fi

while read -r name value; do
    case "$name" in
        CapEff: | CapPrm: | CapInh: | CapBnd: | CapAmb:)
            case "$AS_ROOT $name $value" in
                *" 0000000000000000") ;;
                "1 CapEff: 00000000000000eb" | "1 CapPrm: 00000000000000eb" | "1 CapBnd: 00000000000000eb") ;;
                *) breaks all "it has capabilities: $name $value" ;;
            esac ;;
        NoNewPrivs:) [ "$value" = 1 ] || breaks all "it may gain privileges" ;;
        Uid:) case "$AS_ROOT$value" in 0*) breaks all "it is root" ;; esac ;;
    esac
done </proc/self/status
# Who is told to end with all that it started is told now, and must not be there afterwards.
(trap '' TERM HUP; (trap '' TERM HUP; exec sleep 1000) & exec sleep 1000) &
echo tried
wait
