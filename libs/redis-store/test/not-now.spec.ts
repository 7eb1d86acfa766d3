/** What servers of different ages say when they cannot do something now, and what is none of that. */
import { describe, expect, it } from '@jest/globals'
import { whyNotNow } from '../src/not-now.js'

describe('what a server refuses for now', () => {
  it.each([
    ["OOM command not allowed when used memory > 'maxmemory'. script: c49f, on @user_script:23.", 'memory'],
    ['user_script:23: -OOM command not allowed', 'memory'],
    ['-READONLY You can not write against a read only replica.', 'replica'],
    [
      'ERR Error running script (call to f_c49f): @user_script:5: @user_script: 5: -MISCONF Redis is configured',
      'disk',
    ],
    ['LOADING Redis is loading the dataset in memory', 'loading'],
    ['MOVED 3999 127.0.0.1:6381', 'another node'],
  ])('S3: %s', (answer, word) => {
    expect(whyNotNow(answer)).toContain(word)
  })

  it.each(['WRONGTYPE Operation against a key', 'ERR unknown command OOM', 'the OOM killer', '', 'OOMPH'])(
    'is none: "%s"',
    (answer) => {
      expect(whyNotNow(answer)).toBeNull()
    },
  )
})
