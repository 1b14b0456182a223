# A browser for the tests of the web page: Debian's headless Chromium with its driver, and axe-core, which finds what a
# screen reader or a keyboard cannot use. Source it after lib.sh and apt.sh.

browser_files=$cache/browser

browser() {
  { command -v chromedriver && command -v chromium; } >/dev/null || [ -x "$cache/bin/chromedriver" ] ||
    step "Chromium of Debian $(debian_release)" fetch_browser ||
    die "no browser: install chromium and chromedriver so that they are on PATH, or let this machine reach its Debian mirror"
  [ -r "$browser_files/axe.min.js" ] && return
  # Debian has no package of it.
  command -v npm >/dev/null || { say "no npm: the web page is tested in the browser, but not by axe-core"; return; }
  step "axe-core" fetch_axe || die "no axe-core: npm cannot fetch it, which the tests of the web page need"
}

# The driver's package wants the browser with its windows; the headless one is a third of that.
fetch_browser() {
  local release
  release=$(debian_release)
  apt_update "$release" || return 1
  rm -rf "$browser_files/root"
  apt_unpack_all "$release" "$browser_files/root" chromium-headless-shell fonts-inter fonts-dejavu-core || return 1
  apt_unpack "$release" "$browser_files/root" chromium-driver || return 1
  fonts >"$browser_files/fonts.conf"
  mkdir -p "$cache/bin"
  started_with_its_files usr/lib/chromium/chromium-headless-shell >"$cache/bin/chromium-headless-shell"
  started_with_its_files usr/bin/chromedriver >"$cache/bin/chromedriver.new"
  chmod +x "$cache/bin/chromium-headless-shell" "$cache/bin/chromedriver.new"
  "$cache/bin/chromedriver.new" --version && "$cache/bin/chromium-headless-shell" --version || return 1
  mv "$cache/bin/chromedriver.new" "$cache/bin/chromedriver"
}

# started_with_its_files PROGRAM: a script that starts a program of the unpacked packages with their libraries and fonts.
started_with_its_files() {
  cat <<SCRIPT
#!/bin/sh
root=$browser_files/root
libraries=\$(find "\$root/usr/lib" "\$root/lib" -maxdepth 2 -type d \( -name '*-linux-gnu' -o -name pulseaudio \) | tr '\n' ':')
LD_LIBRARY_PATH=\$libraries FONTCONFIG_FILE=$browser_files/fonts.conf exec "\$root/$1" "\$@"
SCRIPT
}

fonts() {
  cat <<CONF
<?xml version="1.0"?>
<fontconfig>
  <dir>$browser_files/root/usr/share/fonts</dir>
  <cachedir>$browser_files/fonts</cachedir>
  <alias><family>sans-serif</family><prefer><family>Inter</family></prefer></alias>
  <alias><family>system-ui</family><prefer><family>Inter</family></prefer></alias>
  <alias><family>monospace</family><prefer><family>DejaVu Sans Mono</family></prefer></alias>
</fontconfig>
CONF
}

fetch_axe() {
  local work status=0
  work=$(mktemp -d "$cache/fetch.XXXXXX")
  mkdir -p "$browser_files"
  (cd "$work" && npm pack --silent axe-core@4 && tar -xzf axe-core-*.tgz package/axe.min.js) &&
    mv "$work/package/axe.min.js" "$browser_files/axe.min.js" || status=$?
  rm -rf "$work"
  return "$status"
}
