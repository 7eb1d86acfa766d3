-- commit: everything that one handled message changes, and usually the end of its turn, as one unit (Z4).
--
-- Entry 'K<fence> <note>', number of arguments that follow, 'r' to end the turn or '', then the effects (chat-state)
--       'D<fence> <note>', receipt: '<chat> <inbound id>' or '<chat> #<name>', expected revision or '', new revision,
--                        checkpoint as JSON, its ttl in ms or '', kept record id or '', ms until its appointment or '': the checkpoint,
--                        and the turn ends
--       'L<fence> <note>', receipt, new revision, checkpoint: the same for a plain checkpoint whose expected revision is that
--                        of the note, '<ids>-' or '<ids>S<revision>'
-- Reply 'R' (for 'L') stored
--       'K<more> <revision>'  stored, now or by an earlier copy of this commit
--       'ks' another holds the chat, or the revision is not the expected one;  'ka' nobody holds it
-- Idempotent by the commit's name. Invariants: I5, I12: requires that the chat's current fence is the writer's.

-- Whether `fence` may write: it is the chat's present grant, and its session lives.
local function is_current(record, fence)
  return own_life > 0 and record and find(record, fence .. ' ', 1, true) == 1
end

-- What a commit answers whose fence is not the current one: by its receipt, if it was made before. `n` counts the
-- commits of a turn; a receipt says which one it is of, unless it is of the first.
local function late_commit(record, fence, receipt, n)
  local stamp = stamp_of(receipt)
  if stamp then
    local by, revision, of = match(stamp, '^%d+:(%d+):?(%S*) ?(%d*)$')
    if by == fence and (of == n or of == '' and n == '1') then return 'K- ' .. revision end
  end
  return record and 'ks' or 'ka'
end

local function commit(k, fence, note, at)
  local chat = ARGV[6 + k]
  local ends, effects = ARGV[at] == 'r', at + 1
  local receipt = ARGV[effects + 2] ~= '' and ARGV[effects + 2] or chat .. ' #' .. ARGV[effects + 1]
  local record = record_of(k, chat)
  local n = match(ARGV[effects + 1], ':(%d+)$') or '1'
  if not is_current(record, fence) then return late_commit(record, fence, receipt, n) end
  local revision, more, has_row = apply_effects(chat, fence, effects, stamp_stem .. fence)
  if not revision then return 'ks' end
  if has_row then
    flag_record(chat, record, 'P')
    record = changed[chat] or record
  end
  if ends then
    ids[receipt] = stamp_stem .. fence .. ':' .. revision .. (n == '1' and '' or ' ' .. n)
    hand_over(chat, record, fence, note)
  end
  return 'K' .. more .. ' ' .. revision
end

-- A checkpoint, and the turn ends, whatever else the batch does to this chat.
local function store_and_end(k, fence, note, receipt, expected, new, json, ttl, kept, wake)
  local chat = ARGV[6 + k]
  local record = record_of(k, chat)
  if not is_current(record, fence) then return late_commit(record, fence, receipt, '1') end
  local flag = store_checkpoint(chat, nil, fence, expected, new, json, ttl, kept, wake)
  if not flag then return 'ks' end
  ids[receipt] = stamp_stem .. fence .. ':' .. new
  local bar = find(record, '|', 1, true)
  -- The row is known again, whatever was written to it during this turn.
  if bar then record = sub(record, 1, bar) .. string.gsub(sub(record, bar + 1), 'P', '') end
  hand_over(chat, record, fence, match(note, '^%d+') .. flag)
  return 'K- ' .. new
end

-- 'D'
local function commit_and_end(k, fence, note, at)
  return store_and_end(k, fence, note, unpack(ARGV, at, at + 6))
end

-- 'L'
local function commit_known(k, fence, note, at)
  return store_and_end(k, fence, note, ARGV[at], match(note, '^%d+S(.*)') or '', ARGV[at + 1], ARGV[at + 2], '', '', '')
end
