import type * as api from './api'

const weekdays = ['Sunday', 'Monday', 'Tuesday', 'Wednesday', 'Thursday', 'Friday', 'Saturday']

// rhythms are how often a reservation may come again, with the days and hours of a
// table as crontab has it for one that begins at a moment.
export const rhythms: Record<string, (start: Date) => string> = {
  'each hour': () => '* * * *',
  'each day': (s) => `${s.getHours()} * * *`,
  'Monday to Friday': (s) => `${s.getHours()} * * 1-5`,
  'Saturday and Sunday': (s) => `${s.getHours()} * * 0,6`,
  'each week': (s) => `${s.getHours()} * * ${s.getDay()}`,
  'each month': (s) => `${s.getHours()} ${s.getDate()} * *`,
}

// recurrence is when a reservation comes again that begins at a moment of the
// reader's clock, until the end of its last day if there is one.
export function recurrence(rhythm: string, start: Date, last: string, zone: string): api.Recurrence {
  const r: api.Recurrence = { schedule: `${start.getMinutes()} ${rhythms[rhythm]!(start)}`, zone }
  if (last) {
    const end = new Date(last + 'T00:00')
    end.setDate(end.getDate() + 1)
    r.until = end.toISOString()
  }
  return r
}

// again is when a reservation comes again, in words where there are some.
export function again(e: api.Recurrence): string {
  const [, minute, hour, rest] = /^(\d+) (\d+) \* \* (\S+)$/.exec(e.schedule) ?? []
  const days: Record<string, string> = { '*': 'each day', '1-5': 'Monday to Friday', '0,6': 'Saturday and Sunday' }
  const day = rest && (days[rest] ?? (/^[0-6]$/.test(rest) ? 'each ' + weekdays[Number(rest)] : undefined))
  return (day ? `${day} ${hour!.padStart(2, '0')}:${minute!.padStart(2, '0')}` : e.schedule) + ' ' + (e.zone || 'UTC')
}
