# Mount an overlay, make it the root file system, and run a command in it as a user.
#
#   sh enter.sh MOUNTS LAYERS UPPER INDEX ROOT USER COMMAND [NAME=VALUE ...]
#
# Started by fresh_system.py in new mount, PID, IPC and UTS namespaces: every mount and every process made
# here ends with this shell, which is process 1 in them.
#
# MOUNTS   lines "FROM TO": a folder of the host, and where it is writable inside; TO belongs to USER
# LAYERS   the read-only layers of the overlay, topmost first, separated by colons
# UPPER    the folder that takes what is written; INDEX is overlayfs's own, ROOT the mount point
# COMMAND  for sh, in USER's home folder, with no environment but NAME=VALUE ...
set -eu
mounts=$1 layers=$2 upper=$3 index=$4 root=$5 user=$6 command=$7
shift 7

hostname fresh
mount --make-rprivate /
mount -t overlay -o "lowerdir=$layers,upperdir=$upper,workdir=$index" overlay "$root"
mount -t proc proc "$root/proc"
mount -t sysfs -o ro sysfs "$root/sys"
mount -t tmpfs -o mode=755 dev "$root/dev"
for node in null zero full random urandom tty; do
    touch "$root/dev/$node"
    mount --bind "/dev/$node" "$root/dev/$node"
done
mkdir "$root/dev/shm" "$root/dev/pts"
mount -t tmpfs -o mode=1777,nosuid,nodev shm "$root/dev/shm"
mount -t devpts -o newinstance,ptmxmode=0666,mode=620 devpts "$root/dev/pts"
ln -s pts/ptmx "$root/dev/ptmx"
ln -s /proc/self/fd "$root/dev/fd"
ln -s fd/0 "$root/dev/stdin"
ln -s fd/1 "$root/dev/stdout"
ln -s fd/2 "$root/dev/stderr"

chroot "$root" id -u "$user" >/dev/null 2>&1 ||
    chroot "$root" useradd --create-home --shell /bin/bash "$user"
uid=$(chroot "$root" id -u "$user")
gid=$(chroot "$root" id -g "$user")
home=$(chroot "$root" sh -c "cd ~$user && pwd")
printf '%s\n' "$mounts" | while IFS=' ' read -r from to; do
    [ -n "$from" ] || continue
    mkdir -p "$root$to"
    mount --bind "$from" "$root$to"
    chown "$uid:$gid" "$root$to"
done

# Not chroot: the kernel refuses user namespaces, and so bubblewrap, to whoever stands in one.
cd "$root"
mkdir -p .before
pivot_root . .before
umount -l /.before
rmdir /.before
cd "$home"
# No exec: when this shell, process 1, ends, the kernel ends all others.
setpriv --reuid="$uid" --regid="$gid" --clear-groups \
    env -i HOME="$home" USER="$user" "$@" sh -c "$command"
