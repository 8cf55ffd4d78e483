import types
import numpy as np
from gin_env import engine, view
def play_match(a,b,*,deals,seed=0,rules="cardpuzzle"):
    n=deals
    t=engine.new_tables(rules,n,seed=seed); t=np.concatenate([t,t.copy()])
    ag=[a,b]; done=np.zeros(2*n,bool); pts=np.zeros(2*n)
    aseat=np.repeat([0,1],n); s=0
    while not done.all():
        act=np.full(2*n,-1)
        for k in (0,1):
            rows=np.flatnonzero(~done & ((t['mover']==aseat)==(k==0)))
            if rows.size:
                sub=t[rows]; v=view.observe(sub); m=engine.legal(sub)
                act[rows]=ag[k].act(v,m,engine.mix_keys(seed+1000003*s+k,rows))
        p,o=engine.step(t,act); pts+=p[np.arange(2*n),aseat]; done|=o>0; s+=1
    pair=(pts[:n]+pts[n:])/2
    w=t['winner']; aw=int((w==aseat).sum()); h=1.96*pair.std()/n**.5
    R=types.SimpleNamespace(points_per_hand=float(pair.mean()),ci95=(float(pair.mean()-h),float(pair.mean()+h)),hands_won=aw,deals=n)
    R.to_dict=lambda: {k:v for k,v in R.__dict__.items() if k!='to_dict'}
    return R
