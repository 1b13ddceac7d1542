#!/usr/bin/env bash
# Puts the part of Nsight Systems that `nsys stats` needs into FOLDER and prints the path of the program.
# It comes from Debian's non-free archive (40 MB); no GPU, driver or root rights are needed. What is there is kept.
set -euo pipefail
folder=$(realpath -m -- "${1:?usage: install_nsys.sh FOLDER}")

package=nsight-systems-target
version=2023.4.4.54~12.4.1-2
sha256=adc9a357a0d9a81617753925a856e8e9957af10c9addae1068c3ef9be1d2a766
keys=/usr/share/keyrings/debian-archive-keyring.gpg
nsys=$folder/usr/lib/x86_64-linux-gnu/nsight-systems/target-linux-x64/nsys

runs() { "$nsys" --version >/dev/null 2>&1; }
give_up() { echo "nsys was not installed: $*" >&2; exit 1; }
reason() { grep -m1 '^E:' "$work/log" || tail -n1 "$work/log"; }

if runs; then echo "$nsys"; exit; fi

for tool in apt-get dpkg-deb; do command -v "$tool" >/dev/null || give_up "there is no $tool"; done
[ "$(dpkg --print-architecture)" = amd64 ] || give_up "there is a package for amd64 only"
[ -r "$keys" ] || give_up "there is no $keys to check the archive's signature with"

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir -p "$work/lists/partial" "$work/sources"
cat >"$work/sources/nonfree.sources" <<END
Types: deb
URIs: http://deb.debian.org/debian
Suites: trixie
Components: non-free
Signed-By: $keys
END
# lists of our own: the machine's stay as they are
apt=(apt-get -qq -o "Dir::State::Lists=$work/lists" -o Dir::Etc::SourceList=/dev/null
  -o "Dir::Etc::SourceParts=$work/sources" -o Dir::Cache::pkgcache= -o Dir::Cache::srcpkgcache=
  -o APT::Sandbox::User= -o APT::Update::Error-Mode=any -o Acquire::Retries=2)
cd "$work"
{ "${apt[@]}" update && "${apt[@]}" download "$package=$version"; } >log 2>&1 || give_up "$(reason)"
echo "$sha256  $(echo ./*.deb)" | sha256sum --check --status || give_up "the download is not the package it should be"
{ mkdir -p "$folder" && dpkg-deb --extract ./*.deb "$folder"; } >log 2>&1 || give_up "$(reason)"
runs || give_up "the program does not start: $("$nsys" --version 2>&1 | head -n1)"
echo "$nsys"
