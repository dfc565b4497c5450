// SPDX-License-Identifier: BSD-2-Clause
/*
 * All tunables of the providers: one table (settings.c) with name, default, unit, range and help,
 * and one reader. A value comes from the default, then from `key=value` in the instance data of the
 * adapter's dat.conf line, then from the environment variable DAT_<KEY> in capitals.
 */
#ifndef CORE_SETTINGS_H
#define CORE_SETTINGS_H

#include <stddef.h>
#include <stdint.h>

/* How an RDMA operation on the same host moves its bytes. */
enum core_copy_path {
	CORE_COPY_AUTO, /* the first of the three below that serves */
	CORE_COPY_MAP,	/* memory of the peer that is mapped here; the next path for what cannot be
			 */
	CORE_COPY_CMA,	/* process_vm_readv and process_vm_writev */
	CORE_COPY_RING, /* through the connection's ring; the target's engine places the bytes */
};

/* What a bind of an RMR makes, on RDMA devices. */
enum core_rmr_bind {
	CORE_RMR_AUTO,	 /* a memory window where the device has fitting ones and checks them */
	CORE_RMR_WINDOW, /* a memory window where the device has fitting ones */
	CORE_RMR_REGISTRATION, /* a registration of the range */
};

/* May a thread be cancelled in a call of the data path? */
enum core_cancellation {
	CORE_CANCELLATION_AUTO, /* what may be a cancellation point is shielded */
	CORE_CANCELLATION_NEVER,
};

struct core_settings {
	uint64_t copy;		   /* enum core_copy_path */
	uint64_t peer_timeout_ms;  /* longest wait for a peer stopped in the middle of a copy */
	uint64_t setup_timeout_ms; /* longest life of a set-up in which the peer says nothing */
	uint64_t rnr_timeout_ms;   /* how long a message waits for a Receive; 0: for ever */
	uint64_t rmr_bind;	   /* enum core_rmr_bind */
	uint64_t cancellation;	   /* enum core_cancellation */
	uint64_t spin_us;	   /* how long a waiting call polls before it sleeps */
};

#define CORE_DEVICE_MAX 64

/*
 * Splits instance data ("eth0", "eth0 0", "127.0.0.1 copy=cma") into the device (a network
 * interface or an address) and settings, applies the environment, and checks every value.
 * Returns 0, or -EINVAL with a message for people in `why_out` (may be NULL).
 */
int core_settings_parse(const char *instance_data, char device_out[CORE_DEVICE_MAX],
			struct core_settings *settings_out, const char **why_out);

/* The port of instance data that core_settings_parse has taken ("mlx5_0 1": 1); 0: none is named.
 */
uint32_t core_settings_port(const char *instance_data);

/* Calls `tell` for each variable of the environment whose name begins with DAT_ and means nothing.
 */
void core_settings_unknown(void (*tell)(const char *name, int len));

/* Writes the table of all settings as text lines (for dat_info and the manual page's check). */
size_t core_settings_describe(char *text, size_t size);

#endif
