// SPDX-License-Identifier: BSD-2-Clause
/*
 * The shared segment of a connection: created by the passive side, checked and mapped by the active
 * side.
 */
#include "soft/shm/segment.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "soft/fds.h"
#include "soft/shm/ring.h"
#include "soft/shm/state.h"

#define SEGMENT_SEALS (F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL)

static void make_rings(struct shm_conn *conn)
{
	struct shm_segment *segment = conn->segment;
	unsigned self = conn->self, peer = 1 - self;

	conn->mine = &segment->side[self];
	conn->theirs = &segment->side[peer];
	shm_producer_init(&conn->request_out, segment->request[self], SHM_REQUEST_RING,
			  &conn->theirs->request_consumed);
	shm_producer_init(&conn->response_out, segment->response[self], SHM_RESPONSE_RING,
			  &conn->theirs->response_consumed);
	shm_consumer_init(&conn->request_in, segment->request[peer], SHM_REQUEST_RING,
			  SHM_REQUEST_PAYLOAD, &conn->mine->request_consumed);
	shm_consumer_init(&conn->response_in, segment->response[peer], SHM_RESPONSE_RING,
			  SHM_RESPONSE_PAYLOAD, &conn->mine->response_consumed);
	atomic_store_explicit(&conn->mine->large, 0, memory_order_relaxed);
	/* armed from the start: the first event wakes the service thread */
	atomic_store_explicit(&conn->mine->armed, 1, memory_order_relaxed);
}

static int map_segment(struct shm_conn *conn, int fd)
{
	void *memory =
		mmap(NULL, sizeof(struct shm_segment), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

	if (memory == MAP_FAILED)
		return -errno;
	/* GEN-34: a child must not keep the segment */
	if (madvise(memory, sizeof(struct shm_segment), MADV_DONTFORK) < 0) {
		munmap(memory, sizeof(struct shm_segment));
		return -ENOMEM;
	}
	conn->segment = memory;
	make_rings(conn);
	shm_conn_set_has_segment(conn);
	return 0;
}

/* A process may be limited to files that are too small for the larger rings. */
static size_t file_size(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur < sizeof(struct shm_file))
		return sizeof(struct shm_segment);
	return sizeof(struct shm_file);
}

int shm_conn_make_segment(struct shm_conn *conn, int *fd_out)
{
	size_t size = file_size();
	int fd = soft_fd_memfd("opendat-conn", size);
	int rc;

	if (fd < 0)
		return fd;
	conn->grow.is_small = size != sizeof(struct shm_file);
	if (fcntl(fd, F_ADD_SEALS, SEGMENT_SEALS) < 0) {
		rc = -errno;
		goto err;
	}
	rc = map_segment(conn, fd);
	if (rc < 0)
		goto err;
	*fd_out = fd;
	return 0;
err:
	soft_fd_close(fd);
	return rc;
}

int shm_conn_map_segment(struct shm_conn *conn, int fd)
{
	struct stat info;
	int seals = fcntl(fd, F_GET_SEALS);

	/* it must be sealed, or the peer could truncate the file under us (SIGBUS) */
	if (seals < 0 || (seals & SEGMENT_SEALS) != SEGMENT_SEALS)
		return -EPROTO;
	if (fstat(fd, &info) < 0 || !S_ISREG(info.st_mode) ||
	    (info.st_size != sizeof(struct shm_file) && info.st_size != sizeof(struct shm_segment)))
		return -EPROTO;
	conn->grow.is_small = info.st_size != sizeof(struct shm_file);
	return map_segment(conn, fd);
}
