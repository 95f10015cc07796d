import torch,time; torch.set_num_threads(1); a=torch.randn(2000,2000)
t=time.perf_counter(); n=0
while time.perf_counter()-t<6: a@a; n+=1
print(2*8e9*n/(time.perf_counter()-t)/1e9)
