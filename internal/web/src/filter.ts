import type * as api from './api'
import { over } from './states'

// Filter is what of the jobs is shown; it is the page's query.
export interface Filter {
  user: string
  project: string
  state: string
  all: boolean // ended ones too
  text: string
}

// everyone is what the query says for jobs of all users; without it they are one's own.
export const everyone = '*'

export const filterOf = (q: URLSearchParams, me: string): Filter => ({
  user: (q.get('user') ?? me).replace(everyone, ''),
  project: q.get('project') ?? '',
  state: q.get('state') ?? '',
  all: q.get('all') === 'true',
  text: q.get('text') ?? '',
})

// asked is the filter as the API has it.
export function asked(f: Filter): string {
  const q = new URLSearchParams({ fold: 'true', newest: 'true' })
  if (f.user) q.set('user', f.user)
  if (f.project) q.set('project', f.project)
  if (f.state) q.set('state', f.state)
  if (f.all) q.set('all', 'true')
  if (f.text.trim()) q.set('text', f.text.trim().slice(0, 200))
  return q.toString()
}

// partOf is the part of a list to which a job belongs: those that run, that wait, that have ended. One that
// goes to another one changes its place.
export const partOf = (j: Pick<api.Job, 'state'>): number => (over(j) ? 2 : j.state === 'QUEUED' || j.state === 'ONHOLD' ? 1 : 0)

// Open is an array whose tasks are shown below it.
export interface Open {
  at: number // where the array is in the list
  tasks: api.Job[]
}

// lineAt is what a line shows, where the tasks of open arrays stand between those of
// the list: a place in the list, and a task if it is one. Open arrays are in order.
export function lineAt(line: number, open: Open[]): { at: number; task?: api.Job } {
  let before = 0 // lines of tasks
  for (const o of open) {
    if (line - before <= o.at) break
    const task = o.tasks[line - before - o.at - 1]
    if (task) return { at: o.at, task }
    before += o.tasks.length
  }
  return { at: line - before }
}
