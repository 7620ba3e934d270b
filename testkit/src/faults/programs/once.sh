#!/bin/bash
# A program that is started for each task: sends the task to the site at $1, port $2, and says what that answers. The head of the answer
# stands before it: only the last JSON object counts.
LC_ALL=C
# Where the worker dies, it may have written only a part of the task.
IFS= read -r task || exit 1
who=${4#*'"WHO":"'}
exec 3<>"/dev/tcp/$1/$2"
printf 'POST /task HTTP/1.0\r\nHost: %s:%s\r\nUser-Agent: %s\r\nContent-Length: %d\r\n\r\n%s' \
  "$1" "$2" "${who%%\"*}" "${#task}" "$task" >&3
exec cat <&3
