-- set-user-if: writes a user's state if nobody has written since it was read.
--
-- KEYS  1 the user's hash: d JSON, r revision
-- ARGV  1 expected revision, '' for no row  2 JSON  3 new revision
-- Reply 1 written (also if this very write was made before), 0 not
-- Invariants: I9; a user's state is not a chat's, so no fence guards it: the revision does.
local has = redis.call('HGET', KEYS[1], 'r')
if has == ARGV[3] then return 1 end
if (has or '') ~= ARGV[1] then return 0 end
redis.call('HSET', KEYS[1], 'd', ARGV[2], 'r', ARGV[3])
return 1
