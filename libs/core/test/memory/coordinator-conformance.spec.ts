/** The in-process coordinator passes the suite that every driver has to pass. */
import { describe, expect, it } from '@jest/globals'
import { coordinatorSuite, memoryBed } from '@botmesh/core/testing'

coordinatorSuite(
  { describe, it, expect },
  { name: 'memory', guarantees: { commits: true, pushes: true }, bed: async () => memoryBed() },
)
