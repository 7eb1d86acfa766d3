/** Failed sends on the Graph API, looked at from all sides. */
import { expect } from '@jest/globals'
import { SendError } from '@botmesh/core'

/** An error with its hidden parts, causes included. */
export function everythingIn(error: unknown): unknown {
  if (!(error instanceof Error)) return error
  const { name, message, stack, cause } = error
  return { ...(error as object), name, message, stack, cause: everythingIn(cause) }
}

/** For one token: gives the SendError of a send that fails, in which the token must not be. */
export function failuresWithout(token: string): (send: Promise<unknown>) => Promise<SendError> {
  return async (send) => {
    const error = await send.then(
      () => undefined,
      (thrown: unknown) => thrown,
    )
    expect(error).toBeInstanceOf(SendError)
    expect(JSON.stringify(everythingIn(error))).not.toContain(token)
    return error as SendError
  }
}
