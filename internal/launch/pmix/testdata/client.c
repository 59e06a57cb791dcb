// A task that uses the PMIx library: it puts a value for its node and one for
// others, meets the rest, and reads what they have put.
#include <pmix.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static pmix_proc_t me;

static void check(pmix_status_t rc, const char *what)
{
	if (rc != PMIX_SUCCESS) {
		fprintf(stderr, "%u: %s: %s\n", me.rank, what, PMIx_Error_string(rc));
		exit(3);
	}
}

static pmix_value_t *of(uint32_t rank, const char *key)
{
	pmix_proc_t p;
	pmix_value_t *v = NULL;
	PMIX_LOAD_PROCID(&p, me.nspace, rank);
	check(PMIx_Get(&p, key, NULL, 0, &v), key);
	return v;
}

static void put(pmix_scope_t scope, const char *key)
{
	char text[64];
	pmix_value_t v;
	snprintf(text, sizeof text, "%s of %u", key, me.rank);
	PMIX_VALUE_LOAD(&v, text, PMIX_STRING);
	check(PMIx_Put(scope, key, &v), "put");
	PMIX_VALUE_DESTRUCT(&v);
}

int main(int argc, char **argv)
{
	const char *mode = argc > 1 ? argv[1] : "";
	check(PMIx_Init(&me, NULL, 0), "init");
	uint32_t size = of(PMIX_RANK_WILDCARD, PMIX_JOB_SIZE)->data.uint32;
	uint32_t here = of(PMIX_RANK_WILDCARD, PMIX_LOCAL_SIZE)->data.uint32;
	printf("%u: %u of %u here, peers %s, job %s, local rank %u, host %s\n", me.rank, here, size, of(PMIX_RANK_WILDCARD, PMIX_LOCAL_PEERS)->data.string,
		of(PMIX_RANK_WILDCARD, PMIX_JOBID)->data.string, of(me.rank, PMIX_LOCAL_RANK)->data.uint16, of(size - 1, PMIX_HOSTNAME)->data.string);

	if (strcmp(mode, "late") == 0 && me.rank == 0) { // the others ask before this puts
		usleep(300000);
	}
	put(PMIX_GLOBAL, "all");
	put(PMIX_LOCAL, "near");
	put(PMIX_REMOTE, "far");
	pmix_value_t v, *got;
	char big[100000];
	memset(big, 'x', sizeof big);
	PMIX_VALUE_CONSTRUCT(&v);
	v.type = PMIX_BYTE_OBJECT;
	v.data.bo.bytes = big;
	v.data.bo.size = sizeof big;
	check(PMIx_Put(PMIX_GLOBAL, "big", &v), "put");
	check(PMIx_Commit(), "commit");

	if (strcmp(mode, "abort") == 0 && me.rank == 1) {
		PMIx_Abort(7, "as asked", NULL, 0);
		return 7;
	}
	if (strcmp(mode, "die") == 0 && me.rank == 1) {
		_exit(5);
	}
	if (strcmp(mode, "late") != 0) {
		bool collect = strcmp(mode, "direct") != 0;
		pmix_info_t info;
		PMIX_INFO_LOAD(&info, PMIX_COLLECT_DATA, &collect, PMIX_BOOL);
		check(PMIx_Fence(NULL, 0, &info, 1), "fence");
	}
	for (uint32_t r = 0; r < size; r++) {
		char want[64];
		snprintf(want, sizeof want, "all of %u", r);
		got = of(r, "all");
		if (strcmp(got->data.string, want) != 0) {
			fprintf(stderr, "%u: %s is not %s\n", me.rank, got->data.string, want);
			return 4;
		}
		got = of(r, "big");
		if (got->type != PMIX_BYTE_OBJECT || got->data.bo.size != sizeof big || got->data.bo.bytes[99999] != 'x') {
			fprintf(stderr, "%u: big of %u is not what was put\n", me.rank, r);
			return 4;
		}
		of(r, r / here == me.rank / here ? "near" : "far");
	}
	pmix_proc_t some[2]; // a fence of two, one on each node
	if (size > 2 && (me.rank == 0 || me.rank == size - 1)) {
		PMIX_LOAD_PROCID(&some[0], me.nspace, 0);
		PMIX_LOAD_PROCID(&some[1], me.nspace, size - 1);
		check(PMIx_Fence(some, 2, NULL, 0), "fence of two");
	}
	got = NULL;
	pmix_info_t now;
	PMIX_INFO_LOAD(&now, PMIX_IMMEDIATE, NULL, PMIX_BOOL);
	pmix_proc_t next;
	PMIX_LOAD_PROCID(&next, me.nspace, (me.rank + 1) % size);
	pmix_status_t rc = PMIx_Get(&next, "nothing", &now, 1, &got);
	printf("%u: nothing is %s\n", me.rank, PMIx_Error_string(rc));
	pmix_info_t log;
	PMIX_INFO_LOAD(&log, PMIX_LOG_STDERR, "said by log\n", PMIX_STRING);
	check(PMIx_Log(&log, 1, NULL, 0), "log");
	pmix_pdata_t found;
	PMIX_PDATA_CONSTRUCT(&found);
	PMIX_LOAD_KEY(found.key, "x");
	printf("%u: lookup is %s\n", me.rank, PMIx_Error_string(PMIx_Lookup(&found, 1, NULL, 0)));
	check(PMIx_Fence(NULL, 0, NULL, 0), "last fence");
	check(PMIx_Finalize(NULL, 0), "finalize");
	printf("%u: done\n", me.rank);
	return 0;
}
