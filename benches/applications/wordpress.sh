#!/usr/bin/env bash
# A capture of a real application: installs WordPress against a database server, fills it, dumps the database, and visits the site with the
# general log on.
#
#   benches/applications/wordpress.sh SOCKET DIRECTORY [VIEWS]
#
#   SOCKET     unix socket of a MariaDB or MySQL server on which root needs no password, as on a server for tests. The database
#              `wordpress` there is dropped and made again; the server's general log is turned on for the visits and off again
#   DIRECTORY  made; receives the site, `shop.sql` (the dump) and `general.log`, which the server must be able to write
#   VIEWS      requests by each of three clients, 60 by default
#
# Needs Debian's packages php-cli php-mysql php-mbstring php-xml mariadb-client curl, and apt-get, which downloads WordPress; it is
# unpacked into DIRECTORY and not installed. The site listens on 127.0.0.1, on PORT (8765), and sends no mail and no request
# elsewhere. About 15 s with 60 views on two processors. Exit codes: 0 done, 1 failed, 2 the command line is wrong.
set -euo pipefail

if [ $# -lt 2 ] || [ $# -gt 3 ]; then
    sed -n '2,15p' "$0" >&2
    exit 2
fi
socket=$1 views=${3:-60} port=${PORT:-8765}
mkdir -p "$2"
work=$(cd "$2" && pwd)
site=$work/site url=http://127.0.0.1:$port
client() { mariadb --no-defaults --user=root --socket="$socket" --batch --skip-column-names "$@"; }

fail() {
    echo "wordpress: $*" >&2
    exit 1
}

for program in php mariadb mariadb-dump curl apt-get dpkg; do
    command -v "$program" >/dev/null || fail "\`$program\` is missing; apt-get install php-cli php-mysql php-mbstring php-xml mariadb-client curl"
done

# Packages of Debian, unpacked: `site` has the application without links into /etc and /usr.
unpack() {
    mkdir -p "$work/packages" "$site/wp-content/themes"
    if ! ls "$work"/packages/wordpress_*.deb >/dev/null 2>&1; then
        (cd "$work/packages" && apt-get download -qq wordpress wordpress-theme-twentytwentythree php-getid3) ||
            fail "apt-get could not download WordPress; run \`apt-get update\` first"
    fi
    local package
    for package in "$work"/packages/*.deb; do
        dpkg --extract "$package" "$work/tree"
    done
    cp -r "$work"/tree/usr/share/wordpress/. "$site"
    rm -f "$site/.htaccess"
    find "$site" -xtype l | while read -r link; do
        local target
        target=$work/tree$(readlink "$link")
        rm -f "$link"
        [ ! -e "$target" ] || cp -r "$target" "$link"
    done
}

configure() {
    cat >"$site/wp-config.php" <<PHP
<?php
define('DB_NAME', 'wordpress');
define('DB_USER', 'root');
define('DB_PASSWORD', '');
define('DB_HOST', 'localhost:$socket');
define('DB_CHARSET', 'utf8mb4');
define('DB_COLLATE', '');
define('WP_HTTP_BLOCK_EXTERNAL', true);
define('DISABLE_WP_CRON', true);
define('AUTOMATIC_UPDATER_DISABLED', true);
define('WP_SITEURL', '$url');
define('WP_HOME', '$url');
\$table_prefix = 'wp_';
if (!defined('ABSPATH')) define('ABSPATH', __DIR__ . '/');
require_once ABSPATH . 'wp-settings.php';
PHP
    client --execute 'DROP DATABASE IF EXISTS wordpress;
        CREATE DATABASE wordpress CHARACTER SET utf8mb4 COLLATE utf8mb4_unicode_ci'
}

php_pid=
stop_site() {
    [ -n "$php_pid" ] || return 0
    # PHP's workers outlive their parent.
    local workers
    workers=$(cat "/proc/$php_pid/task/$php_pid/children" 2>/dev/null || true)
    # shellcheck disable=SC2086 # a list of numbers
    kill $workers "$php_pid" 2>/dev/null || true
    php_pid=
}
trap stop_site EXIT

start_site() {
    PHP_CLI_SERVER_WORKERS=3 php -d error_reporting=0 -d display_errors=0 -S "127.0.0.1:$port" -t "$site" \
        >"$work/php.log" 2>&1 &
    php_pid=$!
    for _ in $(seq 100); do
        ! curl -s -o /dev/null --max-time 5 "$url/readme.html" || return 0
        kill -0 "$php_pid" 2>/dev/null || fail "PHP ended at once: $(tail -n 1 "$work/php.log")"
        sleep 0.1
    done
    fail "PHP does not answer on $url"
}

# Every request has a limit, so that a stuck worker ends the script.
get() { curl -sf -L -o /dev/null --max-time 60 "$@"; }

member() { # NAME VALUE, a string
    printf '<member><name>%s</name><value><string>%s</string></value></member>' "$1" "$2"
}

publish() { # TITLE TAG TEXT: a new post, through the site's interface for programs
    local tags="<member><name>terms_names</name><value><struct><member><name>post_tag</name><value><array><data>"
    tags+="<value><string>$2</string></value></data></array></value></member></struct></value></member>"
    local post
    post="$(member post_type post)$(member post_status publish)$(member comment_status open)"
    post+="$(member post_title "$1")$(member post_content "$3")$tags"
    get -H 'Content-Type: text/xml' --data-binary "<?xml version='1.0'?><methodCall><methodName>wp.newPost</methodName><params>
        <param><value><int>1</int></value></param><param><value><string>admin</string></value></param>
        <param><value><string>capture-admin</string></value></param>
        <param><value><struct>$post</struct></value></param></params></methodCall>" "$url/xmlrpc.php"
}

tags=(pear plum apple cherry quince lemon fig melon)

install_and_fill() {
    curl -sf -o "$work/install.html" --max-time 120 --data-urlencode weblog_title=Shop \
        -d 'user_name=admin&admin_password=capture-admin&admin_password2=capture-admin&pw_weak=on' \
        -d 'admin_email=a@example.org&blog_public=0&language=' "$url/wp-admin/install.php?step=2"
    grep -q Success "$work/install.html" || fail "WordPress was not installed; its answer is in $work/install.html"
    # PHP's server resolves no pretty addresses, which the installer turns on where a request to the site's own host seems to work.
    client wordpress --execute "UPDATE wp_options SET option_value = '' WHERE option_name IN ('permalink_structure', 'rewrite_rules')"
    local number tag
    for number in $(seq 30); do
        tag=${tags[number % 8]}
        publish "Post $number about $tag" "$tag" "It's a long text about $tag. $(printf "$tag grows in rows. %.0s" $(seq 40))"
    done
    get -c "$work/cookies" -b 'wordpress_test_cookie=WP+Cookie+check' \
        -d 'log=admin&pwd=capture-admin&wp-submit=Log+In&testcookie=1' "$url/wp-login.php"
}

visit() { # CLIENT: page views, a comment in ten, a post in 25
    local state=$1 number post tag
    for number in $(seq "$views"); do
        state=$(((state * 1103515245 + 12345 + $1) & 2147483647))
        post=${posts[(state >> 8) % ${#posts[@]}]}
        tag=${tags[(state >> 4) % 8]}
        if ((number % 25 == 0)); then
            publish "$1-$number" "$tag" "New text of client $1: $tag"
        elif ((number % 10 == 0)); then
            get -b "$work/cookies" -d "comment=Remark+$1+$number+on+$tag&comment_post_ID=$post&comment_parent=0&submit=Post" \
                "$url/wp-comments-post.php"
        else
            case $(((state >> 12) % 10)) in
            0 | 1 | 2) get "$url/" ;;
            3 | 4 | 5 | 6) get "$url/?p=$post" ;;
            7) get "$url/?s=$tag" ;;
            8) get "$url/?tag=$tag" ;;
            9) if ((number % 2)); then get "$url/?feed=rss2"; else get -b "$work/cookies" "$url/wp-admin/edit.php"; fi ;;
            esac
        fi
    done
}

unpack
configure
start_site
install_and_fill
mapfile -t posts < <(client wordpress --execute "SELECT ID FROM wp_posts WHERE post_type = 'post' AND post_status = 'publish' ORDER BY ID")
[ "${#posts[@]}" -gt 0 ] || fail "there are no posts"

former=$(client --execute 'SELECT @@global.general_log, @@global.log_output, @@global.general_log_file')
read -r was_on output file <<<"$former"
restore_log() {
    client --execute "SET GLOBAL general_log = OFF; SET GLOBAL log_output = '$output'; SET GLOBAL general_log_file = '$file';
        SET GLOBAL general_log = $was_on" || echo "wordpress: could not set the general log back; it was: $former" >&2
}
trap 'restore_log; stop_site' EXIT
rm -f "$work/general.log"
# Log first, then dump: no statement falls between them, and the dump's own session marks the place.
client --execute "SET GLOBAL general_log = OFF; SET GLOBAL log_output = 'FILE';
    SET GLOBAL general_log_file = '$work/general.log'; SET GLOBAL general_log = ON"
mariadb-dump --no-defaults --user=root --socket="$socket" --single-transaction wordpress >"$work/shop.sql"
began=$(date +%s)
visitors=()
for visitor in 1 2 3; do
    visit "$visitor" &
    visitors+=($!)
done
# Each by itself: a wait for several has the status of the last one.
for visitor in "${visitors[@]}"; do
    wait "$visitor" || fail "a client's request failed; see $work/php.log"
done
echo "$((3 * views)) requests in $(($(date +%s) - began)) s: $work/shop.sql, $work/general.log"
