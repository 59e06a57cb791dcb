package main

import (
	"errors"
	"fmt"
	"time"

	"gbatch/internal/ctld/fsck"
	"gbatch/internal/ctld/site"
	"gbatch/sched"
)

type fsckCmd struct {
	Config     string `default:"/etc/gbatch/gctld.yaml" env:"GBATCH_GCTLD_CONFIG" help:"Configuration file, which says where the directory is." type:"path"`
	Quarantine bool   `help:"Take records that cannot be read out of the store, which keeps them aside: the controller starts without them."`
}

func (c *fsckCmd) Run() error {
	cfg, err := site.Read(c.Config)
	if err != nil {
		return err
	}
	r, err := fsck.Check(cfg, sched.Time(time.Now().UnixMilli()), c.Quarantine)
	for _, line := range r.Bad {
		fmt.Println(line)
	}
	if err != nil {
		return err
	}
	fmt.Printf("%d records, %d cannot be used, %d taken out\n", r.Records, len(r.Bad), r.Aside)
	if len(r.Bad) > r.Aside {
		return errors.New("the controller does not start with these: restore a backup, or take them out by `gctld fsck --quarantine`")
	}
	return nil
}
