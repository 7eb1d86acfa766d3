-- log-append: adds an entry to a channel's stream and wakes its subscribers.
--
-- KEYS  1 the stream
-- ARGV  1 payload  2 keep  3 ttlMs
-- Reply the entry's id. The stream ends ttlMs after its last entry. Published where a connection may listen; where
-- publishing is denied the entry is kept all the same.
-- Invariants: none is at stake; a copy of the call adds the entry again.
local id = redis.call('XADD', KEYS[1], '*', 'p', ARGV[1])
redis.call('XTRIM', KEYS[1], 'MAXLEN', ARGV[2])
redis.call('PEXPIRE', KEYS[1], ARGV[3])
redis.pcall('PUBLISH', KEYS[1], id)
return id
