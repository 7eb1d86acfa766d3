-- take-reading: a take that also reads the chat or notes the arrival of its message.
--
-- Entry '<<n>'   as 'T' of take, with the flag r;  '?<n>' as 'I', with it
--       'A<n>'   with more: flags (i has an inbound id, f only if free, r read, j read the journal too),
--                last message id or '', its time in ms, its journal record or '', user whose state is read or ''
-- Reply as take, 'G' and 'Q' followed by '|<marks>': marks as read_state and arrive say
-- Idempotent by ticket. Invariants: I1, I3, I6, as take.
local function take_with(k, n, field, flags, at)
  local chat = ARGV[6 + k]
  local line = take(k, n, field, find(flags, 'f', 1, true))
  local letter = byte(line)
  if letter ~= 71 and letter ~= 81 then return line end -- G, Q
  local marks = ''
  if at and ARGV[at] ~= '' then marks = arrive(chat, ARGV[at], ARGV[at + 1], ARGV[at + 2]) end
  if letter == 71 and find(flags, 'r', 1, true) then
    local gap, bar = find(line, ' ', 1, true), find(line, '|', 1, true)
    local may_have_row = not match(line, '^|%d+ %d+%-', bar)
    local revision, read = read_state(chat, may_have_row, find(flags, 'j', 1, true))
    if at and ARGV[at + 3] ~= '' then
      local user = call('HMGET', base .. 'u:' .. ARGV[at + 3], 'd', 'r')
      payloads[#payloads + 1], payloads[#payloads + 2] = user[1] or '', user[2] or ''
      read = read .. 'u'
    end
    return sub(line, 1, gap) .. revision .. sub(line, bar) .. '|' .. marks .. 'r' .. read
  end
  return line .. '|' .. marks
end
