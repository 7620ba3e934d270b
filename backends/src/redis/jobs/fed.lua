-- ARGV: runner, id, problem (empty for none). Notes that the sources of a job have been read. Returns whether the
-- runner held it.
local job = find(ARGV[4])
if not job or not is_fed_by(job, ARGV[3]) then
  return 'lost'
end
await_end(job)
if ARGV[5] ~= '' then
  redis.call('HSET', job.key, 'problem', ARGV[5])
end
set_head(job.spider)
return job.cancel and 'cancelled' or 'kept'
