-- ARGV: cursor, approximate number of records to examine. Returns the next cursor (0 at the end), then for each task
-- its key, state, since when, holder and attempts.
local scan = redis.call('HSCAN', PENDING, ARGV[1], 'MATCH', 'task:*', 'COUNT', ARGV[2])
local reply = {scan[1]}
for i = 1, #scan[2], 2 do
  local record = parse(scan[2][i + 1])
  if record then
    for _, value in ipairs({scan[2][i], record.state, int(record.since), record.holder, int(record.attempts)}) do
      reply[#reply + 1] = value
    end
  end
end
return reply
