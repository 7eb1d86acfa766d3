-- lock: fenced locks with a time to live (S2).
--
-- KEYS  1 holders (the floor of fences)
-- ARGV  1 base  2 'acquire', 'renew' or 'release'  3 kind and name  4 token  5 ttlMs
-- Reply acquire: the fence as text, or false if somebody holds it; renew, release: 1, or 0 if the token does not hold it
-- Invariants: I6: fences come from the shard's hybrid clock, so they grow after expiry and loss too.
local call = redis.call
local key = ARGV[1] .. 'lock:' .. ARGV[3]
local holder = call('GET', key)
if ARGV[2] == 'acquire' then
  if holder then return false end
  local clock = call('TIME')
  local now_us = clock[1] * 1000000 + clock[2]
  local floor = (tonumber(call('HGET', KEYS[1], ' floor') or 0) or 0) + 1
  if floor < now_us then floor = now_us end
  local fence = string.format('%.0f', floor)
  call('HSET', KEYS[1], ' floor', fence)
  call('SET', key, ARGV[4], 'PX', ARGV[5])
  return fence
end
if holder ~= ARGV[4] then return 0 end
if ARGV[2] == 'renew' then call('PEXPIRE', key, ARGV[5]) else call('DEL', key) end
return 1
