-- ARGV: worker, urls. Queues the records again that this worker holds.
local now = now_ms()
for i = 2, #ARGV do
  local text = redis.call('HGET', PENDING, ARGV[i])
  local record = read(PENDING, ARGV[i], text)
  if record and is_held_by(record, ARGV[1]) then
    end_start(record)
    record.state, record.since, record.holder = 'q', now, '-'
    redis.call('HSET', PENDING, ARGV[i], format(record))
    redis.call('SREM', BEGUN, ARGV[i])
  end
end
return redis.status_reply('OK')
