-- lock: fenced locks with a time to live (S2): one, or those of one tick.
--
-- KEYS  1 fence: the highest fence of all locks of this shard; it never expires
-- ARGV  1 'acquire', 'renew' or 'release'  2 the lock's key  3 token  4 ttlMs  5 ... the same of further entries, in the
--       order in which they were made
-- Reply for acquire: the fence as text, or false if somebody holds it; for renew and release: 1, or 0 if the token does
--       not hold it. Of several entries an array of these
-- Invariants: I6: fences come from a hybrid clock, so they grow after expiry and loss too. One command raises its floor
--       and reads the one before; it is not the turns' floor, which shares a hash with other things.
local call = redis.call

local function apply(what, key, token, ttl_ms)
  if what == 'acquire' then
    if not call('SET', key, token, 'NX', 'PX', ttl_ms) then return false end
    -- Microseconds as text: to write a large number out costs more than a command.
    local clock = call('TIME')
    local fence = clock[1] .. string.sub('00000' .. clock[2], -6)
    local last = call('SET', KEYS[1], fence, 'GET')
    if last and (#last ~= #fence or last >= fence) then
      local number = tonumber(last) or 0
      if number >= tonumber(fence) then
        fence = string.format('%.0f', number + 1)
        call('SET', KEYS[1], fence)
      end
    end
    return fence
  end
  if call('GET', key) ~= token then return 0 end
  if what == 'renew' then call('PEXPIRE', key, ttl_ms) else call('DEL', key) end
  return 1
end

-- An array costs a lone call more than all of its commands.
if #ARGV == 4 then return apply(ARGV[1], ARGV[2], ARGV[3], ARGV[4]) end
local replies = {}
for at = 1, #ARGV, 4 do
  replies[#replies + 1] = apply(ARGV[at], ARGV[at + 1], ARGV[at + 2], ARGV[at + 3])
end
return replies
