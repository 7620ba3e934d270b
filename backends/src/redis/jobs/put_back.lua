-- ARGV: runner, id, the time in ms for which nobody takes it. Returns a job to its position in the queue.
local job = find(ARGV[4])
if job and is_fed_by(job, ARGV[3]) then
  local wait = tonumber(ARGV[5])
  give_up(job, wait > 0 and now_ms() + wait or nil)
end
return redis.status_reply('OK')
