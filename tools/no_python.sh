# Say that there is no Python, with the one line that installs all that the kit takes from the
# system: `sh tools/no_python.sh NAME`, where no program called NAME was found.
#
# Nothing but the shell and `id` is sure to be there. The table is that of mpilab/util/system.py.

for manager in apt-get dnf zypper pacman apk brew apt-get; do
    if command -v "$manager" >/dev/null 2>&1; then break; fi
done
case $manager in
    apt-get) install="apt-get install -y" ;;
    dnf) install="dnf install -y" ;;
    zypper) install="zypper install -y" ;;
    pacman) install="pacman -S --needed" ;;
    apk) install="apk add" ;;
    brew) install="brew install" ;;
esac
as_root="as root: "
if command -v sudo >/dev/null 2>&1; then as_root="sudo "; fi
if [ "$(id -u)" = 0 ] || [ "$manager" = brew ]; then as_root=; fi

packages=
while IFS='|' read -r need apt dnf zypper pacman apk brew; do
    case $need in
        'python '* | compiler* | sanitizers* | make* | bwrap* | smpicc* | jail* | namespaces*) ;;
        *) continue ;;
    esac
    case $manager in
        apt-get) names=$apt ;;
        dnf) names=$dnf ;;
        zypper) names=$zypper ;;
        pacman) names=$pacman ;;
        apk) names=$apk ;;
        brew) names=$brew ;;
    esac
    for name in $names; do
        case " $packages " in *" $name "*) ;; *) [ "$name" = - ] || packages="$packages $name" ;; esac
    done
done <"${0%/*}/../mpilab/util/system-packages.txt"

echo "setup: no Python: '$1' was not found" >&2
echo "  where:  PATH=$PATH" >&2
echo "  remedy: $as_root$install$packages   (or make PYTHON=/path/to/python3)" >&2
exit 1
