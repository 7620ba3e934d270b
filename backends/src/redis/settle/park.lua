-- ARGV: worker, crawl id, then url, until, failed (0 or 1) for each. Returns for each the attempts so far, or `NOT_HELD`.
local now = now_ms()
local answer = {}

-- Whether the answer to this call was lost: the record waits until that very instant, and nobody has confirmed it. A
-- record that was let go waits for its crawl, though it may still be listed since it was found.
local function is_told_again(record, url, until_then)
  return record.state == 'p' and record.since == until_then and not is_let_go(record)
    and redis.call('ZSCORE', OUTBOX, ARGV[2] .. ' ' .. url)
end

for i = 3, #ARGV, 3 do
  local text = redis.call('HGET', PENDING, ARGV[i])
  local record = read(PENDING, ARGV[i], text)
  if record and is_held_by(record, ARGV[1]) then
    end_start(record)
    record.state, record.since, record.holder = 'p', tonumber(ARGV[i + 1]), '-'
    record.attempts = record.attempts + tonumber(ARGV[i + 2])
    redis.call('HSET', PENDING, ARGV[i], format(record))
    redis.call('ZADD', OUTBOX, int(now), ARGV[2] .. ' ' .. ARGV[i])
    redis.call('SREM', BEGUN, ARGV[i])
    answer[#answer + 1] = record.attempts
  elseif record and is_told_again(record, ARGV[i], tonumber(ARGV[i + 1])) then
    answer[#answer + 1] = record.attempts
  else
    answer[#answer + 1] = NOT_HELD
  end
end
return answer
