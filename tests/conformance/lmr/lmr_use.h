// SPDX-License-Identifier: BSD-2-Clause
/*
 * A connected pair of endpoints and registered buffers.
 */
#ifndef TESTS_LMR_USE_H
#define TESTS_LMR_USE_H

#include "conf.h"

#define PAGE 4096u

static inline void create(struct dt_pair *pair, struct dt_buf *buf, unsigned priv)
{
	dt_buf_create(&pair->ia, pair->ia.pz, buf, PAGE, (DAT_MEM_PRIV_FLAGS)priv);
}

typedef DAT_RETURN (*post_fn)(struct dt_pair *pair, int kind, DAT_LMR_TRIPLET local,
			      const struct dt_buf *remote);

static inline void check_works(struct dt_pair *pair, struct dt_buf *buf)
{
	conf_write(pair, dt_seg(buf, 0, 64), dt_rseg(buf, PAGE / 2, 64));
	conf_send(pair, dt_seg(buf, 0, 64), dt_seg(buf, 64, 64));
}

#endif
