package job

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/adhocore/gronx"

	"gbatch/internal/document"
)

// cronForm checks a line of cron's five fields: minute, hour, day of the month,
// month, day of the week. Times are UTC, and Sunday is 0 or 7.
func cronForm(s string) string {
	if _, err := NextCron(s, 0); err != nil {
		return fmt.Sprintf("is %s: %v", document.Quote(s), err)
	}
	return ""
}

// NextCron is the first time after the moment given that a line of cron names.
func NextCron(line string, after Instant) (Instant, error) {
	if len(strings.Fields(line)) != 5 || len(line) > 256 {
		return 0, errors.New(`want five fields, as "30 6 * * 1-5": minute, hour, day of the month, month, day of the week`)
	}
	if !gronx.IsValid(line) {
		return 0, errors.New(`is no time table: each field is *, numbers, ranges as 1-5, lists as 1,3, or steps as */15`)
	}
	next, err := gronx.NextTickAfter(line, time.UnixMilli(int64(after)).UTC(), false)
	if err != nil {
		return 0, errors.New("names no day that ever comes")
	}
	return Instant(next.UnixMilli()), nil
}
