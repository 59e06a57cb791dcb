import type * as api from './api'
import { Value } from './value'

// contact says whether the controller answers. Pages keep what they show, and what
// was typed, while it does not.
export const contact = new Value<'here' | 'away'>('here')

// While it is away it is asked for again each second: pages that ask nothing hear of
// its return, too.
contact.watch((is) => {
  if (is === 'away') setTimeout(probe, 1000)
})

function probe(): void {
  fetch('/healthz', { cache: 'no-store' }).then(
    (answer) => (answer.ok ? contact.set('here') : setTimeout(probe, 1000)),
    () => setTimeout(probe, 1000),
  )
}

// late is how many answers are waited for longer than people do without a word.
export const late = new Value(0)

const patience = 4000

// loggedOut is called when the controller does not know us any more.
export const loggedOut = new Value(0)

// Failure is a request that was refused, in the controller's words.
export class Failure extends Error {
  constructor(readonly status: number, readonly hint?: string, message?: string, readonly problems: api.Problem[] = []) {
    super(message)
  }
}

// Away is a request that got no answer, or that the controller could not serve now.
export class Away extends Error {}

const again = [500, 1000, 2000, 4000]

// read asks for something, and asks again until the controller answers or the
// signal ends it: a controller that restarts is noticed by the banner alone.
export async function read<T>(path: string, signal?: AbortSignal): Promise<T> {
  for (let i = 0; ; i++) {
    try {
      return await send<T>('GET', path, undefined, { signal })
    } catch (e) {
      if (!(e instanceof Away) || signal?.aborted) throw e
      await pause(again[Math.min(i, again.length - 1)]!, signal)
    }
  }
}

// change asks the controller to do something, once: what gets no answer is for the
// user to decide.
export function change<T>(method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE', path: string, body?: unknown, headers?: HeadersInit, ms = patience): Promise<T> {
  return send<T>(method, path, body, { headers }, ms)
}

// send asks, and says when the answer takes longer than so many milliseconds.
async function send<T>(method: string, path: string, body: unknown, more: RequestInit, ms = patience): Promise<T> {
  let waited = 0
  const timer = setTimeout(() => late.set(late.get() + ++waited), ms)
  try {
    const answer = await ask(path, {
      method,
      body: body === undefined ? undefined : JSON.stringify(body),
      ...more,
      headers: { ...(body === undefined ? {} : { 'Content-Type': 'application/json' }), ...more.headers },
    })
    return (answer.status === 204 ? undefined : await answer.json()) as T
  } finally {
    clearTimeout(timer)
    late.set(late.get() - waited)
  }
}

// ask sends a request and gives the answer if it is a good one.
export async function ask(path: string, init: RequestInit): Promise<Response> {
  let answer: Response
  try {
    answer = await fetch(path, { ...init, credentials: 'same-origin', redirect: 'error' })
  } catch (e) {
    if (init.signal?.aborted) throw e
    contact.set('away')
    throw new Away('The controller does not answer.')
  }
  if (answer.ok) {
    contact.set('here')
    return answer
  }
  const said = (await answer.json().catch(() => ({}))) as Partial<api.Error>
  if (answer.status === 503 || answer.status === 502) {
    if (!path.startsWith('/v1/login')) contact.set('away') // there it is the identity provider's answer that is missing
    throw new Away(said.message ?? 'The controller cannot answer now.')
  }
  contact.set('here')
  if (answer.status === 401) loggedOut.set(loggedOut.get() + 1)
  throw new Failure(answer.status, said.hint, said.message ?? `The controller answered ${answer.status}.`, said.problems ?? [])
}

function pause(ms: number, signal?: AbortSignal): Promise<void> {
  return new Promise((done) => {
    const timer = setTimeout(done, ms)
    signal?.addEventListener('abort', () => (clearTimeout(timer), done()), { once: true })
  })
}
