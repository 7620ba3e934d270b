-- ARGV: approximate number of records to examine. Returns whether these are all (1 or 0), the number queued, the
-- number parked, when the first of these is due (0 if none is parked), how many of them have failed and are retried,
-- then each holder with the number that it holds.
local scan = redis.call('HSCAN', PENDING, '0', 'COUNT', ARGV[1])
local queued, parked, due, retried, held = 0, 0, 0, 0, {}
for i = 2, #scan[2], 2 do
  local record = parse(scan[2][i])
  if record and is_held(record) then
    add(held, record.holder, 1)
  elseif record and record.state == 'p' and record.since > NOW then
    parked = parked + 1
    retried = retried + (record.attempts > 0 and 1 or 0)
    due = due > 0 and math.min(due, record.since) or record.since
  elseif record then
    queued = queued + 1
  end
end
local reply = {scan[1] == '0' and '1' or '0', int(queued), int(parked), int(due), int(retried)}
for holder, count in pairs(held) do
  reply[#reply + 1] = holder
  reply[#reply + 1] = int(count)
end
return reply
