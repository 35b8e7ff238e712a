#!/usr/bin/env bash
# An MCP server that behaves as it is told: server.sh FOLDER [MODE].
# Each line that it reads is added to FOLDER/heard; its tools are those of FOLDER/tools, if that is there, one a line.
folder=$1 mode=${2:-plain}
echo "$$" >> "$folder/pids"

say() { printf '%s\n' "$1"; }
answer() { say "{\"jsonrpc\":\"2.0\",\"id\":$id,\"result\":$1}"; }
text() { answer "{\"content\":[{\"type\":\"text\",\"text\":\"$1\"}]}"; }
tell() { say "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/$1\"}"; }
tool() { printf '{"name":"%s","description":"%s","inputSchema":{"type":"object"}}' "$1" "a tool of a test"; }

tools() {
    if [[ -e $folder/tools ]]; then paste -sd, "$folder/tools"; else tool do; fi
}

# Tools are called by what they do: the argument `what` of `do`, or the name.
call() {
    [[ $line =~ \"what\":\"([a-z-]+)\" ]] && what=${BASH_REMATCH[1]} || what=
    case $what in
        echo) [[ $line =~ \"text\":\"([^\"]*)\" ]]; text "${BASH_REMATCH[1]}" ;;
        variable) [[ $line =~ \"text\":\"([^\"]*)\" ]]; text "${!BASH_REMATCH[1]-unset}" ;;
        folder) text "$PWD" ;;
        answer) printf '{"jsonrpc":"2.0","id":%s,"result":' "$id"; cat "$folder/answer"; say '}' ;;
        fail) answer '{"content":[{"type":"text","text":"no such file"}],"isError":true}' ;;
        refuse) say "{\"jsonrpc\":\"2.0\",\"id\":$id,\"error\":{\"code\":-32602,\"message\":\"not like that\"}}" ;;
        crash) echo "Segmentation\e[2J fault" >&2; exit 3 ;;
        killed) kill -KILL $$ ;;
        close) exec >&-; while read -r line; do :; done ;;
        hang) ;;
        raw) cat "$folder/raw" ;;
        line) head -c 40000000 /dev/zero | tr '\0' x ;;
        chatter) x=$(printf 'x%.0s' {1..60000}); while say '{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":1,"progress":1,"message":"'"$x"'"}}'; do :; done ;;
        noise) yes "$(printf 'no message%.0s' {1..1000})" ;;
        complain) head -c 3000000 /dev/zero | tr '\0' '\n' >&2; text complained ;;
        child) sleep 1000 > /dev/null 2>&1 & echo $! >> "$folder/pids"; text started ;;
        daemon)
            setsid bash -c 'echo $$ > "$0/daemon.new"; mv "$0/daemon.new" "$0/daemon"; exec sleep 1000' "$folder" > /dev/null 2>&1 < /dev/null &
            while [[ ! -e $folder/daemon ]]; do sleep 0.02; done
            text started ;;
        ask)
            say '{"jsonrpc":"2.0","id":900,"method":"ping"}'
            say '{"jsonrpc":"2.0","id":901,"method":"sampling/createMessage","params":{"messages":[],"maxTokens":1}}'
            say '{"jsonrpc":"2.0","id":902,"method":"roots/list"}'
            say '{"jsonrpc":"2.0","id":903,"method":"elicitation/create","params":{"message":"your key?","requestedSchema":{"type":"object","properties":{}}}}'
            text asked ;;
        change) cp "$folder/next" "$folder/tools"; tell tools/list_changed; text changed ;;
        *) text "${what:-nothing}" ;;
    esac
}

list() {
    if [[ $mode == odd ]]; then
        answer '["no", "list"]'
    elif [[ $mode == pages ]]; then
        case $line in
            *'"cursor":"two"'*) answer "{\"tools\":[$(tool second)],\"nextCursor\":\"three\"}" ;;
            *'"cursor":"three"'*) answer "{\"tools\":[$(tool third)]}" ;;
            *) answer "{\"tools\":[$(tool first)],\"nextCursor\":\"two\"}" ;;
        esac
    elif [[ $mode == endless ]]; then
        answer "{\"tools\":[$(tool "t$id")],\"nextCursor\":\"again\"}"
    elif [[ $mode != unlisted ]]; then
        answer "{\"tools\":[$(tools)]}"
        [[ $mode == restless ]] && tell tools/list_changed
    fi
}

greet() {
    [[ $mode == refusing ]] && say "{\"jsonrpc\":\"2.0\",\"id\":$id,\"error\":{\"code\":-32000,\"message\":\"not today\"}}" && return
    [[ $mode == rude ]] && answer '{"hello":1}' && return
    answer '{"protocolVersion":"2025-06-18","capabilities":{"tools":{"listChanged":true}},"serverInfo":{"name":"test","version":"1"}}'
}

case $mode in
    exit) printf 'no licence\e[2J found\n' >&2; exit 4 ;;
    once) [[ -e $folder/was-here ]] && { echo "still broken" >&2; exit 5; }; : > "$folder/was-here" ;;
    silent) while read -r line; do printf '%s\n' "$line" >> "$folder/heard"; done; exit ;;
    deaf) exec sleep 1000 ;;
    garbage) say "Welcome to the server!"; while read -r line; do :; done; exit ;;
    banner) say "Welcome to the server!"; say ""; say "[1] ready" ;;
    noisy) head -c 3000000 /dev/zero | tr '\0' '\n' >&2; echo "all is well" >&2 ;;
    stubborn) trap '' TERM ;;
    parent) sleep 1000 & echo $! >> "$folder/pids" ;;
esac

while read -r line; do
    printf '%s\n' "$line" >> "$folder/heard"
    [[ $line =~ \"id\":([0-9]+) ]] && id=${BASH_REMATCH[1]}
    case $line in
        *'"method":"initialize"'*) greet ;;
        *'"method":"tools/list"'*) list ;;
        *'"method":"tools/call"'*) call ;;
    esac
done
[[ $mode == stubborn ]] && while :; do sleep 0.05; done
exit 0
