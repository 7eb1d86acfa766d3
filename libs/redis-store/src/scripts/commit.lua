-- commit: everything that one handled message changes, and usually the end of its turn, as one unit (Z4).
--
-- Entry 'K<fence> <note>' , number of arguments that follow, 'r' to end the turn or '', then the effects (chat-state)
-- Reply 'K<more> <revision>'  stored, now or by an earlier copy of this commit
--       'ks' another holds the chat, or the revision is not the expected one;  'ka' nobody holds it
-- Idempotent by the commit's name. Invariants: I5, I12: requires that the chat's current fence is the writer's.
local function commit(k, fence, note, at)
  local chat = ARGV[6 + k]
  local ends, effects = ARGV[at] == 'r', at + 1
  local receipt = ARGV[effects + 2] ~= '' and ARGV[effects + 2] or chat .. ' #' .. ARGV[effects + 1]
  local record = record_of(k, chat)
  if not record or find(record, fence .. ' ', 1, true) ~= 1 then
    local stamp = stamp_of(receipt)
    local by, revision
    if stamp then by, revision = match(stamp, '^%d+:(%d+):?(.*)$') end
    if by == fence then return 'K- ' .. revision end
    return record and 'ks' or 'ka'
  end
  local revision, more, has_row = apply_effects(chat, fence, effects, stamp_stem .. fence)
  if not revision then return 'ks' end
  if has_row then
    flag_record(chat, record, 'P')
    record = changed[chat] or record
  end
  if ends then
    ids[receipt] = stamp_stem .. fence .. ':' .. revision
    hand_over(chat, record, fence, note)
  end
  return 'K' .. more .. ' ' .. revision
end
