-- ARGV: runner, lease in ms, ids. Returns for each whether the runner still holds it.
local now, holds = now_ms(), {}
for i = 5, #ARGV do
  local job = find(ARGV[i])
  if job and is_fed_by(job, ARGV[3]) then
    hold(job, now + ARGV[4])
    holds[#holds + 1] = job.cancel and 'cancelled' or 'kept'
  else
    holds[#holds + 1] = 'lost'
  end
end
return holds
