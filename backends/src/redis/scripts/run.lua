-- A different run of the server may have lost the last second of what an earlier one wrote. So may one that was a
-- replica meanwhile, because another's data had replaced its own: then its replication has another id.
local function run_id()
  local replication = string.match(redis.call('INFO', 'replication'), 'master_replid:(%x+)')
  return string.match(redis.call('INFO', 'server'), 'run_id:(%x+)') .. (replication and '-' .. replication or '')
end
