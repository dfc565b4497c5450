// SPDX-License-Identifier: BSD-2-Clause
/* The stand-in's protection domains and memory regions. */
#include "fake_inner.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

static struct fake_mr *mrs;

struct ibv_pd *ibv_alloc_pd(struct ibv_context *context)
{
	struct ibv_pd *pd = NULL;

	pthread_mutex_lock(&fake_lock);
	if (!fake_fails(__func__, ENOMEM)) {
		pd = calloc(1, sizeof(*pd));
		pd->context = context;
		fake_count(1);
	}
	pthread_mutex_unlock(&fake_lock);
	return pd;
}

int ibv_dealloc_pd(struct ibv_pd *pd)
{
	bool is_used;

	pthread_mutex_lock(&fake_lock);
	is_used = fake_mw_is_in(pd) || fake_pd_is_used(pd);
	if (!is_used)
		fake_count(-1);
	pthread_mutex_unlock(&fake_lock);
	if (is_used) {
		errno = EBUSY;
		return EBUSY;
	}
	free(pd);
	return 0;
}

/* Checks, as the kernel does when it pins the pages, whether they are writable. */
static bool can_pin(const void *addr, size_t length, unsigned int access)
{
	FILE *maps = access & IBV_ACCESS_LOCAL_WRITE ? fopen("/proc/self/maps", "r") : NULL;
	unsigned long start = (uintptr_t)addr, low, high;
	bool is_good = true;
	char line[512], flags[5];

	while (maps && fgets(line, sizeof(line), maps))
		if (sscanf(line, "%lx-%lx %4s", &low, &high, flags) == 3 && low < start + length &&
		    high > start && flags[1] != 'w')
			is_good = false;
	if (maps)
		fclose(maps);
	errno = EFAULT;
	return is_good;
}

/* A device requires local write for remote write. */
static bool is_access_valid(unsigned int access)
{
	errno = EINVAL;
	return !(access & IBV_ACCESS_REMOTE_WRITE) || (access & IBV_ACCESS_LOCAL_WRITE);
}

struct ibv_mr *ibv_reg_mr_iova2(struct ibv_pd *pd, void *addr, size_t length, uint64_t iova,
				unsigned int access)
{
	struct fake_mr *mr = NULL;

	(void)iova;
	pthread_mutex_lock(&fake_lock);
	if (!fake_fails("ibv_reg_mr", ENOMEM) && is_access_valid(access) &&
	    can_pin(addr, length, access)) {
		mr = calloc(1, sizeof(*mr));
		fake_last_number++;
		mr->mr = (struct ibv_mr){.context = pd->context,
					 .pd = pd,
					 .addr = addr,
					 .length = length,
					 .lkey = fake_last_number,
					 .rkey = fake_last_number};
		mr->access = (int)access;
		mr->next = mrs;
		mrs = mr;
		fake_count(1);
	}
	pthread_mutex_unlock(&fake_lock);
	return mr ? &mr->mr : NULL;
}

#undef ibv_reg_mr
struct ibv_mr *ibv_reg_mr(struct ibv_pd *pd, void *addr, size_t length, int access)
{
	return ibv_reg_mr_iova2(pd, addr, length, (uintptr_t)addr, (unsigned int)access);
}

/* Changes the access only; FAKE_NO_REREG: not even that, as libraries of many devices. */
int ibv_rereg_mr(struct ibv_mr *mr, int flags, struct ibv_pd *pd, void *addr, size_t length,
		 int access)
{
	bool is_good;

	(void)pd;
	(void)addr;
	(void)length;
	pthread_mutex_lock(&fake_lock);
	is_good = flags == IBV_REREG_MR_CHANGE_ACCESS && !getenv("FAKE_NO_REREG") &&
		  !fake_fails(__func__, EOPNOTSUPP);
	if (is_good)
		((struct fake_mr *)mr)->access = access;
	pthread_mutex_unlock(&fake_lock);
	return is_good ? 0 : IBV_REREG_MR_ERR_CMD;
}

int ibv_dereg_mr(struct ibv_mr *mr)
{
	struct fake_mr **link = &mrs;

	pthread_mutex_lock(&fake_lock);
	while (&(*link)->mr != mr)
		link = &(*link)->next;
	if ((*link)->windows) {
		pthread_mutex_unlock(&fake_lock);
		errno = EBUSY;
		return EBUSY;
	}
	*link = (*link)->next;
	fake_count(-1);
	pthread_mutex_unlock(&fake_lock);
	free(mr);
	return 0;
}

struct fake_mr *fake_mr_by_key(uint32_t key)
{
	struct fake_mr *mr = mrs;

	while (mr && mr->mr.lkey != key)
		mr = mr->next;
	return mr;
}

/* May that range be accessed with the key? */
bool fake_mem_is_good(uint32_t key, const struct ibv_pd *pd, uint64_t addr, uint64_t len,
		      int access)
{
	const struct fake_mr *mr = fake_mr_by_key(key);

	return mr && mr->mr.pd == pd && (mr->access & access) == access &&
	       addr >= (uintptr_t)mr->mr.addr && len <= mr->mr.length &&
	       addr - (uintptr_t)mr->mr.addr <= mr->mr.length - len;
}

bool fake_sges_are_good(const struct fake_qp *qp, const struct ibv_sge *sge, uint32_t count,
			int access)
{
	for (uint32_t i = 0; i < count; i++)
		if (sge[i].length &&
		    !fake_mem_is_good(sge[i].lkey, qp->qp.pd, sge[i].addr, sge[i].length, access))
			return false;
	return true;
}

uint64_t fake_sges_len(const struct ibv_sge *sge, uint32_t count)
{
	uint64_t len = 0;

	for (uint32_t i = 0; i < count; i++)
		len += sge[i].length;
	return len;
}
