-- batch-general: every other entry. Stands at the end of everything_else(), which batch-turns calls when the first one
-- comes: most batches have none.

-- Applies the entry at `at`; returns whether it succeeded, its line or why not, and where the next one begins.
return function(k, at, letter, rest, next_check, gap)
  local ok, line, after = true, nil, at + 1
  -- Some of these read what a session holds and who waits.
  write_lines()
  if letter == 60 then -- <
    ok, line = pcall(take_with, k, rest, nil, 'r')
  elseif letter == 63 then -- ?
    ok, line = pcall(take_with, k, rest, ARGV[6 + count + next_check], 'r')
  elseif letter == 65 then -- A
    after = at + 6
    local field = find(ARGV[at + 1], 'i', 1, true) and ARGV[7 + count + next_check]
    ok, line = pcall(take_with, k, rest, field, ARGV[at + 1], at + 2)
  elseif letter == 75 then -- K
    after = at + 2 + tonumber(ARGV[at + 1])
    ok, line = pcall(commit, k, sub(rest, 1, gap - 1), sub(rest, gap + 1), at + 2)
  elseif letter == 68 then -- D
    after = at + 8
    ok, line = pcall(commit_and_end, k, sub(rest, 1, gap - 1), sub(rest, gap + 1), at + 1)
  elseif letter == 76 then -- L
    after = at + 4
    ok, line = pcall(commit_known, k, sub(rest, 1, gap - 1), sub(rest, gap + 1), at + 1)
  elseif letter == 87 then -- W
    ok, line = pcall(withdraw, k, rest)
  elseif letter == 85 then -- U
    ok, line = pcall(nudge, k, rest)
  elseif letter == 72 then -- H
    after = at + 3
    ok, line = pcall(renew, rest, at + 1)
  elseif letter == 83 then -- S
    after = at + 3
    ok, line = pcall(open_session, rest, at + 1)
  elseif letter == 69 then -- E
    ok, line = pcall(close_session, rest)
  elseif letter == 88 then -- X
    ok, line = pcall(explain, rest)
  elseif letter == 74 then -- J
    after = at + 3
    ok, line = pcall(note_arrival, k, rest, at + 1)
  elseif letter == 66 then -- B
    after = at + 5
    ok, line = pcall(fail_record, k, rest, at + 1)
  elseif letter == 86 then -- V
    after = at + 4
    ok, line = pcall(settle_send, k, rest, at + 1)
  elseif letter == 81 then -- Q
    ok, line = pcall(find_record, k, rest)
  elseif letter == 71 then -- G
    ok, line = pcall(read_only, k)
  elseif letter == 77 then -- M
    ok, line = pcall(tell_committed, k, rest)
  elseif letter == 70 then -- F
    after = at + 2
    ok, line = pcall(move_aside, k, rest, ARGV[at + 1])
  elseif letter == 79 then -- O
    after = at + 2
    ok, line = pcall(open_state, k, rest, at + 1)
  elseif letter == 80 then -- P
    after = at + 2 + tonumber(ARGV[at + 1])
    ok, line = pcall(commit_state, k, rest, at + 2)
  else
    ok, line = false, 'no transition ' .. string.char(letter)
  end
  return ok, line, after
end
