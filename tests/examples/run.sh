# How each example is run and checked; part of `x`, which has copied the example's folder to $work and built its plugins.
# shellcheck shell=bash disable=SC2154

example_finite() {
  start_query --trigger "available now"
  wait "$query" || { show_logs; die "the query failed"; }
  cat "$work/console.txt"
  local only=
  # In complete mode each table replaces the one before: the last one is the result.
  grep -q '^output_mode = "complete"' "$work/query.toml" && only=last
  console_blocks "$work/expected.txt" $only >"$work/wanted"
  console_blocks "$work/console.txt" $only >"$work/found"
  compare "$work/wanted" "$work/found"
}
example_files() {
  show_all_rows
  start_query
  wait "$query" || { show_logs; die "the query failed"; }
  count_by_others "$work"/text/*.txt >"$work/wanted"
  count_on_console "$work/console.txt" >"$work/found"
  compare "$work/wanted" "$work/found"
  sort -k2,2nr "$work/found" | sed -n 1,20p
}
# free_port PORT: that one, or another where something listens there already.
free_port() {
  local port=$1
  while nc -z localhost "$port" 2>/dev/null; do port=$((20000 + RANDOM)); done
  echo "$port"
}
example_remote() {
  local port
  port=$(free_port 8099)
  sed -i "s/8099/$port/" "$work/query.toml" "$work/host.toml"
  python3 "$work/serve.py" "$port" "$work/logs" 2>"$work/serve.log" &
  children+=($!)
  wait_for 30 "the server" nc -z 127.0.0.1 "$port"
  export MILLSTREAM_HOST_FILE=$work/host.toml
  example_finite
}
# serve_lines PORT: what is written to file descriptor 3 goes to whoever connects there.
serve_lines() {
  mkfifo "$work/lines"
  nc -lk localhost "$1" <"$work/lines" 2>"$work/nc.log" &
  children+=($!)
  exec 3>"$work/lines"
}
# example_network RESULT: the function RESULT says whether the console has what is wanted.
example_network() {
  local port
  port=$(free_port 9999)
  sed -i "s/port = 9999/port = $port/" "$work/query.toml"
  serve_lines "$port"
  start_query
  wait_for 120 "the query to start" running_query
  # A second of silence between the lines, as if somebody typed them: they arrive in different batches.
  local line
  while IFS= read -r line; do echo "$line" >&3; sleep 0.5; done <"$work/input.txt"
  wait_for 60 "the last counts" "$1"
  end_query
  exec 3>&-
  cat "$work/console.txt"
}
network_counts() {
  console_blocks "$work/expected.txt" last >"$work/wanted"
  console_blocks "$work/console.txt" last >"$work/found"
  cmp -s "$work/wanted" "$work/found"
}
# Which windows there are is for the clock to say; each word is in two of them.
network_sums() {
  console_blocks "$work/console.txt" last |
    awk -F'|' 'NR > 1 { sum[$3] += $4 } END { for (word in sum) print word, sum[word] }' | LC_ALL=C sort >"$work/found"
  cmp -s "$work/expected.txt" "$work/found"
}

# start_servers PROGRAM: the servers of an example, which do what `served` says and end with the script.
start_servers() {
  coproc SERVERS { "$CARGO_TARGET_DIR/debug/$1" 2>"$work/servers.log"; }
  children+=("$SERVERS_PID")
  exec 4<&"${SERVERS[0]}" 5>&"${SERVERS[1]}"
}
# served_at VARIABLE: takes the address that the servers say next.
served_at() {
  read -r -t 120 "$1" <&4 || { cat "$work/servers.log" >&2; die "the servers did not start"; }
}
# served COMMAND…: has the servers of an example do something and prints the answer.
served() {
  echo "$*" >&5
  local line
  while read -r -t 120 line <&4; do
    [ "$line" != ok ] || return 0
    echo "$line"
  done
  cat "$work/servers.log" >&2
  die "the server did not do: $*"
}
# A broker of Apache Kafka: `topic NAME PARTITIONS`, `send TOPIC FILE`, `read TOPIC`.
start_broker() {
  need_kafka
  say "starting a broker"
  start_servers kafka-broker
  local address
  served_at address
  sed -i "s/localhost:9092/$address/" "$work/query.toml"
}
example_kafka_words() {
  start_broker
  served topic lines 2
  start_query
  wait_for 120 "the query to start" running_query
  # A while between the lines: they arrive in different batches.
  local line
  while IFS= read -r line; do echo "$line" >"$work/line" && served send lines "$work/line"; sleep 0.5; done <"$work/input.txt"
  wait_for 60 "the last counts" network_counts
  end_query
  cat "$work/console.txt"
}
example_kafka_heat() {
  start_broker
  served topic visits 3
  served topic heat 3
  cat examples/page-heat/visits/*.csv >"$work/visits.csv"
  served send visits "$work/visits.csv"
  local kill
  for kill in 1 2; do
    start_query
    wait_for 120 "$((kill * 5)) batches" batches_are $((kill * 5))
    say "killing the query with SIGKILL"
    kill -KILL "$query"
    wait "$query" || true
  done
  start_query --trigger "available now"
  wait "$query" || { show_logs; die "the query failed"; }
  served read heat >"$work/heat.txt"
  say "$(wc -l <"$work/visits.csv") visits were sent, $(wc -l <"$work/heat.txt") records are in the topic"
  awk -F, '{ n[$1]++; s[$1] += 0.1 * $2 + 0.9 * $3 + 0.4 * $4 + $5 }
    END { for (p in n) printf "%s %d %.2f\n", p, n[p], s[p] }' "$work/visits.csv" | LC_ALL=C sort >"$work/wanted"
  sed 's/.*"page":"\([^"]*\)","heat":\([^}]*\)}/\1 \2/' "$work/heat.txt" |
    awk '{ n[$1]++; s[$1] += $2 } END { for (p in n) printf "%s %d %.2f\n", p, n[p], s[p] }' | LC_ALL=C sort >"$work/found"
  compare "$work/wanted" "$work/found"
  sort -k3,3nr "$work/found" | sed -n 1,5p
}
# PostgreSQL and MariaDB: `PRODUCT do FILE` and `PRODUCT rows FILE`, which prints them.
start_databases() {
  need_databases
  say "starting PostgreSQL and MariaDB"
  start_servers example-databases
  local postgresql mysql
  served_at postgresql
  served_at mysql
  sed -i "s#postgresql://[^\"]*#$postgresql#; s#mysql://[^\"]*#$mysql#" "$work/query.toml"
}
example_words_into_mysql() {
  cp -R examples/file-word-count/text "$work/text"
  sed -i 's#\.\./file-word-count/text#text#' "$work/query.toml"
  start_databases
  start_query
  wait_for 120 "the first batch" batches_are 1
  say "killing the query with SIGKILL"
  kill -KILL "$query"
  wait "$query" || true
  start_query
  wait "$query" || { show_logs; die "the query failed"; }
  count_by_others "$work"/text/*.txt >"$work/wanted"
  echo "SELECT CONCAT(word, ' ', count) FROM word_counts" >"$work/ask.sql"
  served mysql rows "$work/ask.sql" | LC_ALL=C sort >"$work/found"
  compare "$work/wanted" "$work/found"
  say "the table has $(wc -l <"$work/found") words; the most frequent ones:"
  sort -k2,2nr "$work/found" | sed -n 1,5p
}
example_orders() {
  start_databases
  served postgresql do "$work/orders.sql"
  start_query
  wait_for 120 "the rows that are there" batches_are 1
  sed -n 1,2p "$work/changes.sql" >"$work/some.sql"
  served postgresql do "$work/some.sql"
  wait_for 60 "the first changes" batches_are 2
  end_query
  say "the query is stopped; the table goes on"
  sed -n '3,$p' "$work/changes.sql" >"$work/more.sql"
  served postgresql do "$work/more.sql"
  start_query
  echo "SELECT id, customer, status, total FROM orders ORDER BY id" >"$work/ask.sql"
  wait_for 60 "the mirror to be as wanted" is_mirrored
  end_query
  cat "$work/found"
}
is_mirrored() {
  served mysql rows "$work/ask.sql" >"$work/found"
  cmp -s "$work/expected.txt" "$work/found"
}
# start_program NAME ARGUMENTS…: an example of the API for programs; console.txt takes its output.
start_program() {
  "$CARGO_TARGET_DIR/debug/examples/$1" "${@:2}" >>"$work/console.txt" 2>>"$work/query.log" &
  query=$!
  children+=("$query")
}
end_program() {
  kill "-${1:-TERM}" "$query"
  wait "$query" || true
}
build_program() {
  say "building the program $1"
  cargo build --workspace --example "$1"
  : >"$work/console.txt"
}
# The heat of pages: of lines of visits by awk, and of the last block on the console.
heat_by_others() {
  awk -F, '{ s[$1] += 0.1 * $2 + 0.9 * $3 + 0.4 * $4 + $5 } END { for (p in s) printf "%s %.2f\n", p, s[p] }' "$@" |
    LC_ALL=C sort -k2,2nr | sed -n 1,10p
}
heat_on_console() {
  awk '/^Time:/ { block = "" } /^\(/ { gsub(/[()]/, ""); block = block $0 "\n" } END { printf "%s", block }' "$work/console.txt" |
    awk -F, '{ printf "%s %.2f\n", $1, $2 }' | LC_ALL=C sort -k2,2nr
}
heat_is() {
  kill -0 "$query" 2>/dev/null || { show_logs; die "the program ended too early"; }
  heat_on_console >"$work/found"
  cmp -s "$1" "$work/found"
}
example_heat_window() {
  build_program page_heat_window
  mkdir "$work/clicks"
  start_program page_heat_window "$work/clicks" "$work/checkpoint"
  wait_for 60 "the first window" grep -qs '^Time:' "$work/console.txt"
  local file
  for file in examples/page-heat/visits/*.csv; do
    cp "$file" "$work/moving" && mv "$work/moving" "$work/clicks/"
    mv "$work/clicks/moving" "$work/clicks/${file##*/}"
  done
  heat_by_others examples/page-heat/visits/*.csv >"$work/wanted"
  wait_for 60 "a window with all visits" heat_is "$work/wanted"
  end_program
  cat "$work/console.txt"
}
blocks_are() { [ "$(grep -c '^Time:' "$work/console.txt")" -ge "$1" ]; }
example_heat_state() {
  need_netcat
  build_program page_heat_state
  local port half
  port=$(free_port 9999)
  grep -h '^04[0-7]' examples/page-heat/visits/*.csv >"$work/visits.csv"
  half=$(($(wc -l <"$work/visits.csv") / 2))
  sed -n "1,${half}p" "$work/visits.csv" >"$work/first.csv"
  serve_lines "$port"
  start_program page_heat_state localhost "$port" "$work/checkpoint"
  wait_for 60 "the first batch" blocks_are 1
  cat "$work/first.csv" >&3
  heat_by_others "$work/first.csv" >"$work/wanted"
  wait_for 60 "the heats of the first half" heat_is "$work/wanted"
  say "killing the program with SIGKILL"
  end_program KILL
  half=$(grep -c '^Time:' "$work/console.txt")
  start_program page_heat_state localhost "$port" "$work/checkpoint"
  wait_for 60 "further batches" blocks_are $((half + 2))
  sed "1,$(wc -l <"$work/first.csv")d" "$work/visits.csv" >&3
  heat_by_others "$work/visits.csv" >"$work/wanted"
  wait_for 60 "the heats of all" heat_is "$work/wanted"
  end_program
  exec 3>&-
  cat "$work/found"
}
