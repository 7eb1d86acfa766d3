-- join-mesh: publishes how this mesh keeps its keys, or says what the mesh that is there does differently (Z11).
--
-- KEYS  1 holders
-- ARGV  1 base  2 protocol version  3 layout  4 shards  5 windowMs
-- Reply { 'ok' } or { 'differs', field, what the mesh has }
-- A mesh without a live session may change the window; the rest says where things are, and stays.
-- Invariants: all of them hold only among replicas that agree on these; idempotent (I9).
local mesh = ARGV[1] .. 'mesh'
local fields = { 'protocol', 'layout', 'shards', 'windowMs' }
local has = redis.call('HMGET', mesh, unpack(fields))
local clock = redis.call('TIME')
local alive = redis.call('ZCOUNT', ARGV[1] .. 'sessions', clock[1] * 1000, '+inf') > 0
for i = 1, 4 do
  if has[i] and has[i] ~= ARGV[i + 1] and (alive or i <= 3) then return { 'differs', fields[i], has[i] } end
end
redis.call('HSET', mesh, 'protocol', ARGV[2], 'layout', ARGV[3], 'shards', ARGV[4], 'windowMs', ARGV[5])
return { 'ok' }
