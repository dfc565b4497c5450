// SPDX-License-Identifier: BSD-2-Clause
/* dat_opendat_mem_alloc and dat_opendat_mem_free (dat/opendat.h), an extension. */
#include "conf.h"

#include <dat/opendat.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define LEN (UINT64_C(1) << 20)

/* Counts the descriptors of the process. */
static int descriptors(void)
{
	int count = 0;

	for (int fd = 0; fd < 1024; fd++)
		count += dup2(fd, fd) == fd;
	return count;
}

/* With DAT_COPY=map the program fails unless the target was mapped (copy_path.h). */
static void mem_alloc__target_of_rdma__mapped_by_the_peer(void **state)
{
	struct dt_pair *pair = *state;
	DAT_PVOID memory[2];
	struct dt_buf buf[2];

	for (int i = 0; i < 2; i++) {
		dt_ok(dat_opendat_mem_alloc(LEN, DAT_OPENDAT_MEM_DEFAULT, &memory[i]));
		assert_int_equal((uintptr_t)memory[i] % (uintptr_t)sysconf(_SC_PAGESIZE), 0);
		dt_check_bytes(memory[i], LEN, 0);
		dt_lmr_create(&pair->ia, pair->ia.pz, memory[i], LEN, DAT_MEM_PRIV_ALL_FLAG,
			      &buf[i]);
	}
	dt_fill(memory[0], LEN, 7);
	dt_map(&pair->a, dt_seg(&buf[0], 0, 1), dt_rseg(&buf[1], 0, 1));
	conf_write(pair, dt_seg(&buf[0], 0, LEN), dt_rseg(&buf[1], 0, LEN));
	dt_check_pattern(memory[1], LEN, 7);
	for (int i = 0; i < 2; i++) {
		dt_ok(dat_lmr_free(buf[i].lmr));
		dt_ok(dat_opendat_mem_free(memory[i]));
	}
}

static void mem_alloc__freed__nothing_remains(void **state)
{
	int before = descriptors();
	DAT_PVOID memory[3];

	(void)state;
	for (int i = 0; i < 3; i++)
		dt_ok(dat_opendat_mem_alloc(1, DAT_OPENDAT_MEM_DEFAULT, &memory[i]));
	dt_ok(dat_opendat_mem_free(memory[1]));
	dt_fails_with(dat_opendat_mem_free(memory[1]), DAT_INVALID_PARAMETER, DAT_INVALID_ARG1);
	dt_ok(dat_opendat_mem_free(memory[0]));
	dt_ok(dat_opendat_mem_free(memory[2]));
	assert_int_equal(descriptors(), before);
}

static void mem_alloc__bad_arguments__refused(void **state)
{
	DAT_PVOID memory = &memory;

	(void)state;
	dt_fails_with(dat_opendat_mem_alloc(0, DAT_OPENDAT_MEM_DEFAULT, &memory),
		      DAT_INVALID_PARAMETER, DAT_INVALID_ARG1);
	dt_fails_with(dat_opendat_mem_alloc(UINT64_MAX, DAT_OPENDAT_MEM_DEFAULT, &memory),
		      DAT_INVALID_PARAMETER, DAT_INVALID_ARG1);
	dt_fails_with(dat_opendat_mem_alloc(1, (DAT_OPENDAT_MEM_FLAGS)2, &memory),
		      DAT_INVALID_PARAMETER, DAT_INVALID_ARG2);
	dt_fails_with(dat_opendat_mem_alloc(1, DAT_OPENDAT_MEM_DEFAULT, NULL),
		      DAT_INVALID_PARAMETER, DAT_INVALID_ARG3);
	dt_fails_with(dat_opendat_mem_free(&memory), DAT_INVALID_PARAMETER, DAT_INVALID_ARG1);
	dt_fails_with(dat_opendat_mem_free(NULL), DAT_INVALID_PARAMETER, DAT_INVALID_ARG1);
	/* no file is that long */
	dt_fails_with(dat_opendat_mem_alloc(UINT64_C(1) << 61, DAT_OPENDAT_MEM_DEFAULT, &memory),
		      DAT_INSUFFICIENT_RESOURCES, DAT_RESOURCE_MEMORY);
	assert_ptr_equal(memory, &memory);
}

static unsigned int huge_pages_free(void)
{
	FILE *file = fopen("/proc/meminfo", "re");
	unsigned int count = 0;
	char line[128];

	while (file && fgets(line, sizeof(line), file))
		if (sscanf(line, "HugePages_Free: %u", &count) == 1)
			break;
	if (file)
		fclose(file);
	return count;
}

/* Huge pages are used if there are any, and refused otherwise. */
static void mem_alloc__huge_pages__used_or_refused(void **state)
{
	DAT_PVOID memory;
	DAT_RETURN ret = dat_opendat_mem_alloc(1, DAT_OPENDAT_MEM_HUGE, &memory);

	(void)state;
	if (!huge_pages_free() && ret != DAT_SUCCESS) {
		dt_returns(ret, DT_ERROR(DAT_INSUFFICIENT_RESOURCES, DAT_RESOURCE_MEMORY));
		return;
	}
	dt_ok(ret);
	assert_int_equal((uintptr_t)memory & 0xfffff, 0);
	*(volatile char *)memory = 1;
	dt_ok(dat_opendat_mem_free(memory));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		dt_pair_test(mem_alloc__target_of_rdma__mapped_by_the_peer),
		cmocka_unit_test(mem_alloc__freed__nothing_remains),
		cmocka_unit_test(mem_alloc__bad_arguments__refused),
		cmocka_unit_test(mem_alloc__huge_pages__used_or_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
