-- Another run of the server than the one in which something was written may have lost its last second. So may one that was a
-- replica meanwhile, as what another had replaced its own: then its replication has another id.
local function run_id()
  local replication = string.match(redis.call('INFO', 'replication'), 'master_replid:(%x+)')
  return string.match(redis.call('INFO', 'server'), 'run_id:(%x+)') .. (replication and '-' .. replication or '')
end
