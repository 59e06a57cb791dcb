import type * as api from './api'

// What a state means for the eye: it moves, it waits, it went well, or it did not.
const kinds: Record<string, string> = {
  RUNNING: 'runs', STARTING: 'runs', ASSIGNED: 'runs',
  COMPLETING: 'ends', MUSTHALT: 'ends', HALTING: 'ends',
  QUEUED: 'waits', ONHOLD: 'waits',
  FINISHED: 'good', HALTED: 'good',
  FAILED: 'bad', CANCELLED: 'ended', DELETED: 'ended',
}

// shown is the state that lists show.
export const shown = (j: Pick<api.Job, 'state' | 'ending'>): string => (j.ending ? 'COMPLETING' : j.state)

export const over = (j: Pick<api.Job, 'state'>): boolean => ['FINISHED', 'FAILED', 'CANCELLED', 'DELETED', 'HALTED'].includes(j.state)

export const waits = (j: Pick<api.Job, 'state'>): boolean => j.state === 'QUEUED' || j.state === 'ONHOLD'

export function State(props: { job: Pick<api.Job, 'state' | 'ending' | 'reason'> }) {
  const state = shown(props.job)
  return <span class={'state ' + (kinds[state] ?? 'waits')}>{state}</span>
}
