-- A server that has been restarted or emptied, or has taken over, may lack jobs and ends of jobs: it has to read
-- the stream `journal` first.
if string.match(redis.call('GET', key('journal')) or '', '^%S+') ~= run_id() then
  return redis.error_reply('BEHIND the stream journal is to be taken in first')
end
